// SPDX-License-Identifier: Apache-2.0
//! Outputs that change while packets are metered.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use anyhow::{Context, bail};
use turboflow_formats::Format;
use turboflow_record::TimeUnit;
use turboflow_run::OutputChange;
use turboflow_transport::Tls;

use super::collectors::target_of;
use super::outputs::{Maker, format_of, is_device, is_stdout, name_of};
use super::settings::Settings;
use super::{RecordArgs, Reread, check, rotation};
use crate::beside::identity;
use crate::log::say;

/// A run's options as they follow the configuration.
pub(super) struct Following {
    now: RecordArgs,
    settings: Arc<Settings>,
    tls: Option<Tls>,
    /// What was read at the start, and from which files: the right to read them again may be gone.
    first_tls: ([Option<PathBuf>; 3], Option<Tls>),
    /// Files of one name that are complete, for they were taken out: a second one would replace them.
    complete: Vec<PathBuf>,
}

impl Following {
    pub(super) fn new(args: &RecordArgs, settings: &Arc<Settings>, tls: Option<Tls>) -> Self {
        Self {
            now: args.clone(),
            settings: Arc::clone(settings),
            first_tls: (check::tls_names(args), tls.clone()),
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

    fn apply(&mut self, next: RecordArgs, changes: &Sender<OutputChange>) -> anyhow::Result<()> {
        let kept = kept(&self.now, &next)?;
        let now = check::tls_names(&self.now);
        let (first, first_tls) = &self.first_tls;
        let before = [(&now, self.tls.as_ref()), (first, first_tls.as_ref())];
        let tls = check::tls_after(&next, &before)?;
        let maker = Maker::new(&next, &self.settings, tls.as_ref())?;
        let begin = next.write.iter().filter(|path| !kept.contains(path));
        let begin: Vec<_> = begin.collect();
        let complete = self.complete_without(&kept)?;
        refuse_what_would_be_replaced(&begin, &self.complete, &complete)?;
        let begin = begin.into_iter().map(|path| maker.output(path));
        let begin = begin.collect::<anyhow::Result<Vec<_>>>()?;
        let keep = kept.iter().map(|path| output_name(path));
        let keep = keep.collect::<anyhow::Result<Vec<String>>>()?;
        let (kept, begun, ended) = (keep.len(), begin.len(), self.now.write.len() - keep.len());
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
        for path in self.now.write.iter().filter(|path| !kept.contains(path)) {
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
    begin: &[&PathBuf],
    complete: &[PathBuf],
    then: &[PathBuf],
) -> anyhow::Result<()> {
    let find = |files: &[PathBuf]| begin.iter().find(|path| files.contains(&identity(path)));
    if let Some(path) = find(complete) {
        bail!(
            "{} is complete since it was taken out of `write`, and would be replaced: give it another \
             name, one with a time for instance (%s), or start anew",
            path.display()
        );
    }
    match find(then) {
        Some(path) => bail!(
            "{} is being written under another spelling of its name, and would be completed and replaced: \
             spell it in `write` as before",
            path.display()
        ),
        None => Ok(()),
    }
}

/// Whether an output is a file of one name.
fn is_one_file(args: &RecordArgs, path: &Path) -> anyhow::Result<bool> {
    Ok(target_of(path)?.is_none() && rotation::pattern_of(args, path)?.is_none())
}

/// Outputs that are meant before and after. Those that follow other options of theirs now begin anew, but for
/// files of one name: a second one would replace the first.
fn kept<'a>(now: &RecordArgs, next: &'a RecordArgs) -> anyhow::Result<Vec<&'a PathBuf>> {
    let collectors_alike = for_collectors(next) == for_collectors(now);
    let mut kept = Vec::new();
    for path in next.write.iter().filter(|path| now.write.contains(path)) {
        let alike = match target_of(path)? {
            Some(_) => collectors_alike,
            None => {
                let format = format_of(path, next.format)?;
                for_files(next, format) == for_files(now, format) || is_one_file(next, path)?
            }
        };
        if alike {
            kept.push(path);
        }
    }
    Ok(kept)
}

/// The options without those that no collector follows.
fn for_collectors(args: &RecordArgs) -> RecordArgs {
    RecordArgs {
        write: Vec::new(),
        quiet: false,
        format: None,
        rotate: None,
        rotate_size: None,
        ..args.clone()
    }
}

/// The options that files of the format follow: those about messages only where it has some.
fn for_files(args: &RecordArgs, format: Format) -> RecordArgs {
    let args = RecordArgs {
        write: Vec::new(),
        quiet: false,
        export_rate: None,
        tls_ca: None,
        tls_cert: None,
        tls_key: None,
        ..args.clone()
    };
    match format {
        Format::Ipfix => args,
        Format::Csv | Format::JsonLines | Format::Parquet => RecordArgs {
            export_mtu: 0,
            template_interval: Duration::ZERO,
            no_export_options: false,
            export_time: TimeUnit::Milliseconds,
            observation_domain: None,
            enterprise_number: 0,
            ..args
        },
    }
}
