// SPDX-License-Identifier: Apache-2.0
//! Outputs that change while packets are metered.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::{Context, bail};
use turboflow_run::{OutputChange, OutputConfig, RunConfig};

use super::collectors::{TlsRead, target_of};
use super::outputs::{Maker, is_device, is_stdout, name_of};
use super::settings::Settings;
use super::{Reread, rotation, shared};
use crate::beside::identity;
use crate::log::say;

/// A run as it follows the configuration.
pub(super) struct Following {
    now: RunConfig,
    settings: Arc<Settings>,
    tls: TlsRead,
    /// What was read at the start: the right to read it again may be gone.
    first_tls: TlsRead,
    /// Files of one name that are complete, for they were taken out: a second one would replace
    /// them.
    complete: Vec<PathBuf>,
}

impl Following {
    pub(super) fn new(run: &RunConfig, settings: &Arc<Settings>, tls: TlsRead) -> Self {
        Self {
            now: run.clone(),
            settings: Arc::clone(settings),
            first_tls: tls.clone(),
            tls,
            complete: Vec::new(),
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

    fn apply(&mut self, next: RunConfig, changes: &Sender<OutputChange>) -> anyhow::Result<()> {
        let kept = kept(&self.now, &next)?;
        let tls = TlsRead::new(&next, &[&self.tls, &self.first_tls])?;
        let maker = Maker::new(&next, &self.settings, &tls)?;
        let is_kept = |output: &&OutputConfig| kept.contains(&&output.to);
        let begin = next.outputs.iter().filter(|output| !is_kept(output));
        let begin: Vec<_> = begin.collect();
        let complete = self.complete_without(&kept)?;
        refuse_what_would_be_replaced(&begin, &self.complete, &complete)?;
        let begin = begin.into_iter().map(|output| maker.output(output));
        let begin = begin.collect::<anyhow::Result<Vec<_>>>()?;
        let keep = kept.iter().map(|path| output_name(path));
        let keep = keep.collect::<anyhow::Result<Vec<String>>>()?;
        let (kept, begun) = (keep.len(), begin.len());
        let ended = self.now.outputs.len() - kept;
        let change = OutputChange::new(keep, begin)?;
        say!(Info Reloaded, kept = kept, begun = begun, ended = ended;
            "the configuration was read anew; outputs that go on: {kept}, that begin: {begun}, \
             that end: {ended}");
        // Where the run is over, there is nothing to change.
        let _ = changes.send(change);
        (self.now, self.tls) = (next, tls);
        self.complete = complete;
        Ok(())
    }

    /// The files of one name that are complete where only those outputs go on.
    fn complete_without(&self, kept: &[&PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        let mut complete = self.complete.clone();
        let paths = self.now.outputs.iter().map(|output| &output.to);
        for path in paths.filter(|path| !kept.contains(path)) {
            if is_one_file(&self.now, path)? && !is_stdout(path) && !is_device(path) {
                complete.push(identity(path));
            }
        }
        Ok(complete)
    }
}

/// What an output calls itself: a collector by its whole address, however much of it was written.
fn output_name(path: &Path) -> anyhow::Result<String> {
    let target = target_of(path)?;
    Ok(target.map_or_else(|| name_of(path), |target| target.to_string()))
}

/// `complete`: files that are complete now. `then`: and those that this change would complete.
fn refuse_what_would_be_replaced(
    begin: &[&OutputConfig],
    complete: &[PathBuf],
    then: &[PathBuf],
) -> anyhow::Result<()> {
    let begin = || begin.iter().map(|output| &output.to);
    let find = |files: &[PathBuf]| begin().find(|path| files.contains(&identity(path)));
    if let Some(path) = find(complete) {
        bail!(
            "{} is complete since it was taken out of the configuration, and would be replaced: give it another \
             name, one with a time for instance (%s), or start anew",
            path.display()
        );
    }
    match find(then) {
        Some(path) => bail!(
            "{} is being written under another spelling of its name, and would be completed and replaced: \
             spell it as before",
            path.display()
        ),
        None => Ok(()),
    }
}

/// Whether an output is a file of one name.
fn is_one_file(run: &RunConfig, path: &Path) -> anyhow::Result<bool> {
    Ok(target_of(path)?.is_none() && rotation::pattern_of(run, path)?.is_none())
}

/// Outputs that are meant before and after. Those whose own options differ begin anew, except files
/// of one name: a second one would replace the first.
fn kept<'a>(now: &RunConfig, next: &'a RunConfig) -> anyhow::Result<Vec<&'a PathBuf>> {
    let mut kept = Vec::new();
    for output in &next.outputs {
        let Some(before) = now.outputs.iter().find(|before| before.to == output.to) else {
            continue;
        };
        let [before, after] = [(before, now), (output, next)]
            .map(|(its, run)| shared::own(its.clone(), run.is_live()));
        if before == after || is_one_file(next, &output.to)? {
            kept.push(&output.to);
        }
    }
    Ok(kept)
}
