// SPDX-License-Identifier: Apache-2.0
//! All engines of this program. Each has a module here, which adapts the engine's crate to the
//! program, a row in [`ENGINES`], and, if it has options, a field in [`EngineArgs`] and a line in
//! [`EngineArgs::into_config`].

pub(crate) mod bridge;
pub(crate) mod collector;
mod offload;
mod options;
mod p4;
mod records;
mod refuse;
mod rtl;
mod software;
mod xdp;

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use turboflow_engine::{Abilities, OwnCount, PlainEngines, RemoteEngine};
use turboflow_merge::Layout;
use turboflow_record::{Input, InputSet};
use turboflow_run::{BridgeConfig, Count, EngineConfig, PipelineConfig, RunConfig, SourceConfig};

use crate::keys::{Key, is_from_file, nearest};
use crate::record::CapturesOfEngine;
pub(crate) use options::{EngineOption, WrittenOptions};
pub(crate) use refuse::{meant_file, refuse_demands, refuse_source};

/// Every engine that a run may name. The first is the default.
static ENGINES: [&dyn EngineKind; 7] = [
    &software::Software,
    &xdp::Xdp,
    &offload::Offload,
    &p4::P4,
    &rtl::Rtl,
    &records::Records,
    &collector::Collector,
];

/// The engine and its options, as typed.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArgs {
    /// Where packets become microflow records
    #[arg(long, value_name = "ENGINE", default_value = EngineConfig::SOFTWARE)]
    #[arg(value_parser = PossibleValuesParser::new(values(|_| true)))]
    engine: String,

    #[command(flatten)]
    xdp: xdp::XdpOptions,

    #[command(flatten)]
    offload: offload::OffloadOptions,

    #[command(flatten)]
    p4: p4::P4Options,

    #[command(flatten)]
    rtl: rtl::RtlOptions,

    #[command(flatten)]
    records: records::RecordsOptions,

    #[command(flatten)]
    collector: collector::CollectorOptions,
}

impl EngineArgs {
    /// Converts the arguments into the section `[engine]`.
    pub(crate) fn into_config(
        self,
        microflow_slots: Option<Count>,
    ) -> anyhow::Result<EngineConfig> {
        let mut config = EngineConfig {
            name: self.engine,
            microflow_slots,
            ..EngineConfig::default()
        };
        options::put(&self.xdp, &mut config)?;
        options::put(&self.offload, &mut config)?;
        options::put(&self.p4, &mut config)?;
        options::put(&self.rtl, &mut config)?;
        options::put(&self.records, &mut config)?;
        options::put(&self.collector, &mut config)?;
        Ok(config)
    }
}

/// An engine of this program.
pub(crate) trait EngineKind: Sync {
    /// The engine's name and capabilities.
    fn abilities(&self) -> Abilities;

    /// The capabilities with the options of a run.
    ///
    /// # Errors
    /// The options are invalid.
    fn abilities_in(&self, _run: &RunConfig) -> anyhow::Result<Abilities> {
        Ok(self.abilities())
    }

    /// Whether this program was built with the engine.
    fn is_built(&self) -> bool;

    /// A description without its name.
    fn about(&self) -> &'static str;

    /// An example for the help of `turboflow record`.
    fn example(&self) -> &'static str {
        ""
    }

    /// The keys of `[engine.NAME]`, each with its flag.
    fn options(&self) -> &'static [&'static EngineOption] {
        &[]
    }

    /// The engines that it builds on, whose options it has too.
    fn stands_on(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether it meters interfaces. Others have a source of their own.
    fn meters_interfaces(&self) -> bool {
        true
    }

    /// Whether it meters captures (`-r`).
    fn reads_files(&self) -> bool {
        false
    }

    /// Whether payload can be inspected for the applications of flows (`--dpi`).
    fn sees_payload(&self) -> bool {
        false
    }

    /// Whether the engine runs outside this machine and is reached over an interface
    /// (`--cpu-port`).
    fn has_cpu_ports(&self) -> bool {
        false
    }

    /// The option for the addresses at which the engine receives messages from other senders.
    fn listen_option(&self) -> Option<&'static EngineOption> {
        None
    }

    /// The options that name input files, which a service does not read.
    fn file_options(&self) -> &'static [&'static EngineOption] {
        &[]
    }

    /// Whether it meters live traffic, as services do.
    fn meters_live(&self) -> bool {
        self.meters_interfaces() || self.has_cpu_ports() || self.listen_option().is_some()
    }

    /// The options that `[engine.NAME]` may contain; `None` for an engine without options.
    fn written(&self) -> Option<&'static dyn WrittenOptions> {
        None
    }

    /// The remote engine of a run; `None` for engines in this process.
    ///
    /// # Errors
    /// The options are invalid.
    fn remote_engine(&self, _run: &RunConfig) -> anyhow::Result<Option<Box<dyn RemoteSetup>>> {
        Ok(None)
    }

    /// The engine in this process of a run; `None` for remote engines and the software engine.
    ///
    /// # Errors
    /// The options are invalid.
    fn packet_engine(&self, _run: &RunConfig) -> anyhow::Result<Option<Box<dyn PacketSetup>>> {
        Ok(None)
    }
}

/// An engine in this process with parsed options.
pub(crate) trait PacketSetup: Send + Sync {
    /// Options of other sections that this engine does not support, as the user wrote them.
    fn unknown_options(&self, run: &RunConfig) -> Vec<String>;

    /// Whether the engine supports records of this layout.
    ///
    /// # Errors
    /// Which part of the layout does not fit.
    fn has_room(&self, layout: &Layout) -> anyhow::Result<()>;

    /// The engines that process packets.
    ///
    /// # Errors
    /// The options are invalid, or the program was built without this engine.
    fn engines(&self) -> anyhow::Result<Arc<dyn PlainEngines>>;
}

/// A remote engine with parsed options, not yet opened.
pub(crate) trait RemoteSetup: Send + Sync {
    /// The capture file for frames that the engine cannot parse, if requested.
    fn unparsed_to(&self) -> Option<&Path> {
        None
    }

    /// Options of other sections that this engine does not support, as the user wrote them.
    fn unknown_options(&self, _run: &RunConfig) -> Vec<String> {
        Vec::new()
    }

    /// The longest time that a packet stays in the engine, in nanoseconds; `None` if the run
    /// decides.
    fn max_age_ns(&self, _run: &RunConfig) -> Option<u64> {
        None
    }

    /// Whether the engine supports records of this layout.
    ///
    /// # Errors
    /// Which part of the layout does not fit.
    fn has_room(&self, _layout: &Layout) -> anyhow::Result<()> {
        Ok(())
    }

    /// Checks the options as far as possible without opening anything.
    ///
    /// # Errors
    /// The first invalid option, and how to fix it.
    fn check(
        &self,
        run: &RunConfig,
        config: &PipelineConfig,
        layout: &Layout,
    ) -> anyhow::Result<()>;

    /// Starts the engine on all its ports, or on none.
    ///
    /// # Errors
    /// Why it cannot start, and how to fix it.
    fn open(
        &self,
        run: &RunConfig,
        config: &PipelineConfig,
        layout: &Layout,
    ) -> anyhow::Result<OpenEngines>;

    /// Why records were lost on the way to this process, and the remedy.
    /// Completes a sentence.
    fn why_records_are_lost(&self) -> String;

    /// Why frames were lost at a port, unless the kernel dropped them.
    fn why_frames_are_lost(&self) -> Option<&'static str> {
        None
    }

    /// Shortcomings that the engine's own counters reveal at the end of a run: sentences with the
    /// remedy.
    fn shortcomings(&self, _counts: &[OwnCount]) -> Vec<String> {
        Vec::new()
    }

    /// Checks where the outputs of a run go.
    ///
    /// # Errors
    /// An output does not go with this engine, and how to fix it.
    fn check_outputs(&self, _run: &RunConfig) -> anyhow::Result<()> {
        Ok(())
    }

    /// The engine's closing report. `received`: packets that the run received.
    fn closing(&self, _counts: &[OwnCount], _received: u64) -> Closing {
        Closing::default()
    }

    /// What the engine rereads at SIGHUP, in addition to the configuration.
    fn reread(&self) -> Option<RereadByEngine> {
        None
    }
}

/// Rereads an engine's own files at SIGHUP.
pub(crate) type RereadByEngine = Box<dyn FnMut() + Send>;

/// What an engine reports at the end of a run, in addition to the common report.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    /// A text of several lines for people; empty for none.
    pub(crate) summary: String,
    /// What was lost: sentences with the remedy. Any makes the exit code 1.
    pub(crate) losses: Vec<String>,
    /// Records from other senders that never arrived or were refused. Any makes the exit code 1.
    pub(crate) missing: Vec<String>,
    /// How microflow records were lost: sentences with the remedy. `None` if the engine knows only
    /// how many.
    pub(crate) records_lost: Option<Vec<String>>,
    /// What is accounted for, if it is not every packet.
    pub(crate) accounted_for: Option<&'static str>,
    /// Whether bytes are those of IP packets, and not of frames, because only records arrive.
    pub(crate) has_ip_bytes: bool,
}

/// Remote engines that are running.
pub(crate) struct OpenEngines {
    /// Where their packets or records come from, in words.
    pub(crate) name: String,
    pub(crate) engines: Vec<Box<dyn RemoteEngine>>,
    /// Guards that keep the ports configured until the run ends.
    pub(crate) held: Vec<Box<dyn Any + Send>>,
    /// For an engine that reads captures itself: what they had besides frames.
    pub(crate) captures: CapturesOfEngine,
}

/// The engine of a run, with parsed options.
pub(crate) struct Engine {
    pub(crate) abilities: Abilities,
    /// `None`: packets become microflow records in this process.
    pub(crate) remote: Option<Box<dyn RemoteSetup>>,
    /// The engine in this process; `None`: a remote engine, or the software engine.
    pub(crate) packet: Option<Box<dyn PacketSetup>>,
}

impl Engine {
    /// The engine of a run. Refuses options of other engines, which would have no effect.
    pub(crate) fn of(run: &RunConfig) -> anyhow::Result<Self> {
        let kind = kind_of(run)?;
        let name = kind.abilities().name;
        if let Some((other, option)) = foreign_option(run, kind) {
            let (key, other_name) = (Key::Of(option), other.abilities().name);
            match could_be_of(run, other, option) {
                true => bail!(
                    "{key} is for engine `{other_name}`: add {}, or leave it out",
                    Key::Engine.with(other_name)
                ),
                false => bail!("{key} is for engine `{other_name}`: leave it out"),
            }
        }
        let mut abilities = kind.abilities_in(run)?;
        if run.meter.dpi {
            if !kind.sees_payload() {
                let able = built_for(&run.source).filter(|other| other.sees_payload());
                let able: Vec<_> = able.map(|other| other.abilities().name).collect();
                let other = match able.is_empty() {
                    true => String::new(),
                    false => format!(", or use {}", Key::Engine.with(&listed(able.into_iter()))),
                };
                bail!(
                    "engine `{name}` does not see payload: leave out {}{other}",
                    Key::Dpi
                );
            }
            abilities.inputs = abilities.inputs.union(InputSet::INSPECTED);
        }
        Ok(Self {
            abilities,
            remote: kind.remote_engine(run)?,
            packet: kind.packet_engine(run)?,
        })
    }

    /// Whether the engine supports records of this layout.
    ///
    /// # Errors
    /// Which part of the layout does not fit.
    pub(crate) fn has_room(&self, layout: &Layout) -> anyhow::Result<()> {
        match (&self.remote, &self.packet) {
            (Some(remote), _) => remote.has_room(layout),
            (None, Some(packet)) => packet.has_room(layout),
            (None, None) => Ok(()),
        }
    }

    /// Options of other sections that the engine does not support, as the user wrote them.
    fn unknown_options(&self, run: &RunConfig) -> Vec<String> {
        match (&self.remote, &self.packet) {
            (Some(remote), _) => remote.unknown_options(run),
            (None, Some(packet)) => packet.unknown_options(run),
            (None, None) => Vec::new(),
        }
    }

    /// The capture file for frames that the engine cannot parse, if requested.
    pub(crate) fn unparsed_to(&self) -> Option<&Path> {
        self.remote.as_ref()?.unparsed_to()
    }

    /// Why frames were lost at a port, unless the kernel dropped them.
    pub(crate) fn why_frames_are_lost(&self) -> Option<&'static str> {
        self.remote.as_ref()?.why_frames_are_lost()
    }

    /// Shortcomings that the engine's own counters reveal at the end of a run.
    pub(crate) fn shortcomings(&self, counts: &[OwnCount]) -> Vec<String> {
        let remote = self.remote.as_ref();
        remote.map_or_else(Vec::new, |remote| remote.shortcomings(counts))
    }

    /// The engine's closing report. `received`: packets that the run received.
    pub(crate) fn closing(&self, counts: &[OwnCount], received: u64) -> Closing {
        let remote = self.remote.as_ref();
        remote.map_or_else(Closing::default, |remote| remote.closing(counts, received))
    }

    /// Checks where the outputs of a run go.
    pub(crate) fn check_outputs(&self, run: &RunConfig) -> anyhow::Result<()> {
        let remote = self.remote.as_ref();
        remote.map_or(Ok(()), |remote| remote.check_outputs(run))
    }

    /// What the engine rereads at SIGHUP, in addition to the configuration.
    pub(crate) fn reread(&self) -> Option<RereadByEngine> {
        self.remote.as_ref()?.reread()
    }

    /// Why records were lost on the way to this process, and the remedy.
    pub(crate) fn why_records_are_lost(&self) -> String {
        let remote = self.remote.as_ref();
        remote.map_or_else(String::new, |remote| remote.why_records_are_lost())
    }
}

/// The first option of another engine that a run has, and that engine.
pub(crate) fn foreign_option(
    run: &RunConfig,
    kind: &dyn EngineKind,
) -> Option<(&'static dyn EngineKind, &'static EngineOption)> {
    let name = kind.abilities().name;
    let is_own = |other: &str| other == name || kind.stands_on().contains(&other);
    let mut others = all().filter(|other| !is_own(other.abilities().name));
    others.find_map(|other| {
        let option = options::first_given(other, &run.engine)?;
        Some((other, option))
    })
}

/// Whether another engine could meter a run instead of its own.
fn could_be_of(run: &RunConfig, other: &dyn EngineKind, option: &'static EngineOption) -> bool {
    let (source, name) = (&run.source, other.abilities().name);
    let has_source = run.is_live() || !source.files.is_empty();
    // With the option, an engine with CPU ports has the pipeline that it needs for files.
    let has_pipeline = !run.is_live() && other.reads_files() && other.has_cpu_ports();
    let is_metered = has_pipeline || metering(source).any(|able| able.abilities().name == name);
    run.bridge == BridgeConfig::default()
        && (!is_from_file() || is_of_services(option))
        && (!has_source || is_metered)
}

/// The engines that a run may name.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn EngineKind> {
    ENGINES.iter().copied()
}

/// The engines of this build that meter this source as it is.
pub(crate) fn built_for(source: &SourceConfig) -> impl Iterator<Item = &'static dyn EngineKind> {
    metering(source).filter(|kind| kind.is_built())
}

/// The engines that meter this source as it is.
fn metering(source: &SourceConfig) -> impl Iterator<Item = &'static dyn EngineKind> {
    all().filter(|kind| match source {
        _ if !source.cpu_ports.is_empty() => kind.has_cpu_ports(),
        _ if !source.interfaces.is_empty() => kind.meters_interfaces(),
        // An engine with CPU ports needs a pipeline besides the files.
        _ => !source.files.is_empty() && kind.reads_files() && !kind.has_cpu_ports(),
    })
}

/// Every engine, including that of `turboflow bridge`.
pub(crate) fn with_bridge() -> impl Iterator<Item = &'static dyn EngineKind> {
    all().chain([&bridge::Bridge as &dyn EngineKind])
}

/// Engines with their descriptions, for help texts.
fn values(is_shown: impl Fn(&dyn EngineKind) -> bool) -> impl Iterator<Item = PossibleValue> {
    all().map(move |engine| {
        let value = PossibleValue::new(engine.abilities().name).help(engine.about());
        value.hide(!is_shown(engine))
    })
}

/// Hides engines that do not meter interfaces, and their options, from the help of a command that
/// refuses them.
pub(crate) fn hide_other_sources(command: clap::Command) -> clap::Command {
    let shown = values(|engine| engine.meters_interfaces());
    let command = command.mut_arg("engine", |arg| {
        arg.value_parser(PossibleValuesParser::new(shown))
    });
    let others = all().filter(|engine| !engine.meters_interfaces());
    let options = others.flat_map(|engine| engine.options());
    let flags: Vec<&str> = options.map(|option| option.flag).collect();
    command.mut_args(move |arg| match arg.get_long() {
        Some(long) if flags.contains(&long) => arg.hide(true),
        _ => arg,
    })
}

/// Hides the flags `hidden`. `-h` shows only the most used ones.
pub(crate) fn show_flags(
    command: clap::Command,
    hidden: &[&str],
    most_used: &[&str],
) -> clap::Command {
    command.mut_args(|arg| {
        let name = arg.get_long().unwrap_or_else(|| arg.get_id().as_str());
        let is_hidden = hidden.contains(&name);
        let is_short = most_used.contains(&name) && !is_hidden;
        arg.hide(is_hidden).hide_short_help(!is_short)
    })
}

/// The flags of all engines except these.
pub(crate) fn flags_of_others(names: &[&str]) -> Vec<&'static str> {
    let others = all().filter(|engine| !names.contains(&engine.abilities().name));
    let options = others.flat_map(|engine| engine.options());
    options.map(|option| option.flag).collect()
}

/// The first option of a run that names input files of its engine.
pub(crate) fn given_files(config: &EngineConfig) -> Option<&'static EngineOption> {
    let given = |engine: &'static dyn EngineKind| {
        let options = config.options.get(engine.abilities().name)?;
        let mut files = engine.file_options().iter().copied();
        files.find(|option| options.contains_key(option.name))
    };
    all().find_map(given)
}

/// Whether a service may use this option.
pub(crate) fn is_of_services(option: &'static EngineOption) -> bool {
    let listens = |engine: &dyn EngineKind| engine.listen_option().is_some();
    let mut live = all().filter(|engine| engine.meters_interfaces() || listens(*engine));
    live.any(|engine| {
        engine.options().contains(&option) && !engine.file_options().contains(&option)
    })
}

/// The kind of engine that a run names.
pub(crate) fn kind_of(run: &RunConfig) -> anyhow::Result<&'static dyn EngineKind> {
    let mut found = all().filter(|engine| engine.abilities().name == run.engine.name);
    match found.next() {
        _ if run.bridge != BridgeConfig::default() => Ok(&bridge::Bridge),
        Some(engine) => Ok(engine),
        None => {
            let wrong = Key::Engine.with(&run.engine.name);
            // Only a file can name it: flags are checked earlier.
            let able = all().filter(|kind| kind.meters_live());
            let able: Vec<_> = able.map(|kind| kind.abilities().name).collect();
            match nearest(&run.engine.name.to_lowercase(), able.iter().copied()) {
                Some(near) => bail!("{wrong}: there is no such engine; did you mean `{near}`?"),
                None => bail!(
                    "{wrong}: there is no such engine; write {}",
                    listed(able.into_iter())
                ),
            }
        }
    }
}

/// Names of the engines that support all of `inputs`.
pub(crate) fn supporting(inputs: InputSet) -> Vec<&'static str> {
    let sees = |engine: &Abilities| inputs.iter().all(|input| engine.inputs.contains(input));
    let able = all().map(EngineKind::abilities).filter(sees);
    able.map(|engine| engine.name).collect()
}

/// A note for a list of inputs, if not every engine supports this one.
pub(crate) fn note_on(input: Input) -> String {
    if input.is_inspected() {
        return " (application inspection)".to_owned();
    }
    if input.is_decided() {
        return "; only with turboflow bridge".to_owned();
    }
    let able = supporting(InputSet::EMPTY.with(input));
    match &able[..] {
        [] => " (not in capture files)".to_owned(),
        [EngineConfig::SOFTWARE, ..] => String::new(),
        able => format!("; only with engine {}", listed(able.iter().copied())),
    }
}

/// Joins names as alternatives in a sentence.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(" or ")
}
