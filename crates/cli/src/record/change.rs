// SPDX-License-Identifier: Apache-2.0
//! Outputs that change while packets are metered.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::Context;
use turboflow_export::transport::Tls;
use turboflow_pipeline::OutputChange;

use super::collectors::{self, target_of};
use super::outputs::{Maker, name_of};
use super::settings::Settings;
use super::{RecordArgs, Reread, rotation};
use crate::log::say;

/// A run's options as they follow the configuration.
pub(super) struct Following {
    now: RecordArgs,
    settings: Arc<Settings>,
    tls: Option<Tls>,
}

impl Following {
    pub(super) fn new(args: &RecordArgs, settings: &Arc<Settings>, tls: Option<Tls>) -> Self {
        Self {
            now: args.clone(),
            settings: Arc::clone(settings),
            tls,
        }
    }

    /// Starts the thread that rereads whenever `heard` says so; gives what the run's outputs hear
    /// of it.
    pub(super) fn start(
        mut self,
        mut reread: Reread,
        heard: Receiver<()>,
    ) -> anyhow::Result<Receiver<OutputChange>> {
        let (changes, receiver) = channel();
        let wait = move || {
            for () in heard {
                reread(&mut |next| self.apply(next, &changes));
            }
        };
        std::thread::Builder::new()
            .name("reread".to_owned())
            .spawn(wait)
            .context("cannot start the thread that rereads the configuration")?;
        Ok(receiver)
    }

    fn apply(&mut self, next: RecordArgs, changes: &Sender<OutputChange>) -> anyhow::Result<()> {
        let kept = kept(&self.now, &next)?;
        let tls = self.tls_of(&next)?;
        let maker = Maker::new(&next, &self.settings, tls.as_ref())?;
        let begin = next.write.iter().filter(|path| !kept.contains(path));
        let begin = begin.map(|path| maker.output(path));
        let begin = begin.collect::<anyhow::Result<Vec<_>>>()?;
        let keep = kept.iter().map(|path| output_name(path));
        let keep = keep.collect::<anyhow::Result<Vec<String>>>()?;
        let (kept, begun, ended) = (keep.len(), begin.len(), self.now.write.len() - keep.len());
        say!(Info Reloaded, kept = kept, begun = begun, ended = ended;
            "the configuration was read anew; outputs that go on: {kept}, that begin: {begun}, \
             that end: {ended}");
        // Where the run is over, there is nothing to change.
        let _ = changes.send(OutputChange { keep, begin });
        (self.now, self.tls) = (next, tls);
        Ok(())
    }

    /// What TLS needs from now on. Files that were read are not read again: the right to may be gone.
    fn tls_of(&self, next: &RecordArgs) -> anyhow::Result<Option<Tls>> {
        let files = |args: &RecordArgs| {
            let RecordArgs {
                tls_ca,
                tls_cert,
                tls_key,
                ..
            } = args;
            [tls_ca.clone(), tls_cert.clone(), tls_key.clone()]
        };
        match &self.tls {
            Some(tls) if files(&self.now) == files(next) => Ok(Some(tls.clone())),
            _ => collectors::tls(next),
        }
    }
}

/// What an output calls itself: a collector by its whole address, however much of it was written.
fn output_name(path: &Path) -> anyhow::Result<String> {
    let target = target_of(path)?;
    Ok(target.map_or_else(|| name_of(path), |target| target.to_string()))
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
