// SPDX-License-Identifier: Apache-2.0
//! Outputs that change while packets are metered.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::Context;
use turboflow_pipeline::OutputChange;

use super::collectors::target_of;
use super::outputs::{Maker, name_of};
use super::settings::Settings;
use super::{RecordArgs, Reread, rotation};
use crate::log::say;

/// Starts the thread that rereads whenever `heard` says so; gives what the run's outputs hear of it.
pub(super) fn follow(
    args: &RecordArgs,
    settings: &Arc<Settings>,
    mut reread: Reread,
    heard: Receiver<()>,
) -> anyhow::Result<Receiver<OutputChange>> {
    let (changes, receiver) = channel();
    let (mut now, settings) = (args.clone(), Arc::clone(settings));
    let wait = move || {
        for () in heard {
            reread(&mut |next| apply(&mut now, next, &settings, &changes));
        }
    };
    std::thread::Builder::new()
        .name("reread".to_owned())
        .spawn(wait)
        .context("cannot start the thread that rereads the configuration")?;
    Ok(receiver)
}

fn apply(
    now: &mut RecordArgs,
    next: RecordArgs,
    settings: &Settings,
    changes: &Sender<OutputChange>,
) -> anyhow::Result<()> {
    let kept: Vec<&PathBuf> = kept(now, &next)?;
    let maker = Maker::new(&next, settings)?;
    let begin = next.write.iter().filter(|path| !kept.contains(path));
    let begin = begin.map(|path| maker.output(path));
    let begin = begin.collect::<anyhow::Result<Vec<_>>>()?;
    let keep: Vec<String> = kept.iter().map(|path| name_of(path)).collect();
    let ended = now.write.len() - keep.len();
    say!(Info Reloaded, kept = keep.len(), begun = begin.len(), ended = ended;
        "the configuration was read anew; outputs that go on: {}, that begin: {}, that end: {ended}",
        keep.len(), begin.len());
    // Where the run is over, there is nothing to change.
    let _ = changes.send(OutputChange { keep, begin });
    *now = next;
    Ok(())
}

/// Outputs that are meant before and after. Those that follow other options now begin anew, but for
/// files of one name: a second one would replace the first.
fn kept<'a>(now: &RecordArgs, next: &'a RecordArgs) -> anyhow::Result<Vec<&'a PathBuf>> {
    let with_those_outputs = RecordArgs {
        write: next.write.clone(),
        quiet: next.quiet,
        ..now.clone()
    };
    let alike = with_those_outputs == *next;
    let mut kept = Vec::new();
    for path in next.write.iter().filter(|path| now.write.contains(path)) {
        let is_one_file = target_of(path)?.is_none() && rotation::pattern_of(next, path)?.is_none();
        if alike || is_one_file {
            kept.push(path);
        }
    }
    Ok(kept)
}
