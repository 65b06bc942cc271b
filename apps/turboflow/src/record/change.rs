// SPDX-License-Identifier: Apache-2.0
//! Changes the outputs while packets are metered.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::{Context, bail};
use turboflow_run::{OutputChange, OutputConfig, RunConfig};

use super::collectors::target_of;
use super::output_keys::OutputKeys;
use super::outputs::{OutputCreator, is_device, is_stdout, name_of};
use super::settings::Settings;
use super::{Reread, kafka, outputs, rotation, shared};
use crate::log::say;
use crate::unfinished_file::file_identity;

/// Keeps the outputs of a run in line with its configuration.
pub(super) struct OutputChanger {
    now: RunConfig,
    settings: Arc<Settings>,
    keys: OutputKeys,
    /// Keys read at the start, which may no longer be readable without root.
    first_keys: OutputKeys,
    /// Files without a time in their name that were completed when they were removed from the
    /// configuration. Writing them again would overwrite them.
    complete: Vec<PathBuf>,
}

impl OutputChanger {
    pub(super) fn new(run: &RunConfig, settings: &Arc<Settings>, keys: OutputKeys) -> Self {
        Self {
            now: run.clone(),
            settings: Arc::clone(settings),
            first_keys: keys.clone(),
            keys,
            complete: Vec::new(),
        }
    }

    /// Starts the thread that rereads the configuration whenever `heard` delivers a message.
    /// Returns the channel of changes to the outputs.
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
        let keys = OutputKeys::new(&next, &[&self.keys, &self.first_keys])?;
        outputs::check(&next, &self.settings)?;
        let creator = OutputCreator {
            run: &next,
            settings: &self.settings,
            keys: &keys,
        };
        let is_kept = |output: &&OutputConfig| kept.contains(&&output.to);
        let begin = next.outputs.iter().filter(|output| !is_kept(output));
        let begin: Vec<_> = begin.collect();
        let complete = self.complete_without(&kept)?;
        refuse_overwriting(&begin, &self.complete, &complete)?;
        let begin = begin.into_iter().map(|output| creator.output(output));
        let begin = begin.collect::<anyhow::Result<Vec<_>>>()?;
        let keep = kept.iter().map(|path| output_name(path));
        let keep = keep.collect::<anyhow::Result<Vec<String>>>()?;
        let (kept, begun) = (keep.len(), begin.len());
        let ended = self.now.outputs.len() - kept;
        let change = OutputChange::new(keep, begin)?;
        say!(Info Reloaded, kept = kept, begun = begun, ended = ended;
            "the configuration was reread; outputs kept: {kept}, begun: {begun}, ended: {ended}");
        // An error means that the run has ended.
        let _ = changes.send(change);
        (self.now, self.keys) = (next, keys);
        self.complete = complete;
        Ok(())
    }

    /// Files without a time in their name that will be complete if only the `kept` outputs
    /// continue.
    fn complete_without(&self, kept: &[&PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        let mut complete = self.complete.clone();
        let paths = self.now.outputs.iter().map(|output| &output.to);
        for path in paths.filter(|path| !kept.contains(path)) {
            if is_one_file(&self.now, path)? && !is_stdout(path) && !is_device(path) {
                complete.push(file_identity(path));
            }
        }
        Ok(complete)
    }
}

/// The name of an output: for a collector, the full address, even if the user left parts out.
fn output_name(path: &Path) -> anyhow::Result<String> {
    if let Some(target) = kafka::target_of(path)? {
        return Ok(target.to_string());
    }
    let target = target_of(path)?;
    Ok(target.map_or_else(|| name_of(path), |target| target.to_string()))
}

/// Refuses outputs that would overwrite a file. `complete`: files that are already complete.
/// `then`: these, and those that this change would complete.
fn refuse_overwriting(
    begin: &[&OutputConfig],
    complete: &[PathBuf],
    then: &[PathBuf],
) -> anyhow::Result<()> {
    let begin = || begin.iter().map(|output| &output.to);
    let find = |files: &[PathBuf]| begin().find(|path| files.contains(&file_identity(path)));
    if let Some(path) = find(complete) {
        bail!(
            "{} was completed when it was removed from the configuration, and would be overwritten: \
             give it another name, for example one with a time (%s), or restart",
            path.display()
        );
    }
    match find(then) {
        Some(path) => bail!(
            "{} is already being written under another spelling of its name, and would be completed \
             and overwritten: spell it as before",
            path.display()
        ),
        None => Ok(()),
    }
}

/// Whether an output is a file without a time in its name.
fn is_one_file(run: &RunConfig, path: &Path) -> anyhow::Result<bool> {
    let is_sent = target_of(path)?.is_some() || kafka::target_of(path)?.is_some();
    Ok(!is_sent && rotation::pattern_of(run, path)?.is_none())
}

/// Outputs that are in both configurations and continue. An output restarts if its own options
/// differ, except a file without a time in its name, which would be overwritten.
fn kept<'a>(now: &RunConfig, next: &'a RunConfig) -> anyhow::Result<Vec<&'a PathBuf>> {
    let mut kept = Vec::new();
    for output in &next.outputs {
        let Some(before) = now.outputs.iter().find(|before| before.to == output.to) else {
            continue;
        };
        let [before, after] = [(before, now), (output, next)]
            .map(|(its, run)| shared::own(its.clone(), run.goes_on()));
        let is_changed = before != after;
        if is_changed && !is_one_file(next, &output.to)? {
            continue;
        }
        if is_changed {
            say!(Warning NeedsRestart, keys = vec!["output".to_owned()];
                "{}: its options changed, which takes effect at the next start",
                name_of(&output.to));
        }
        kept.push(&output.to);
    }
    Ok(kept)
}
