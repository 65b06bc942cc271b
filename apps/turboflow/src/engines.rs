// SPDX-License-Identifier: Apache-2.0
//! The engines of this program. This is the one list of them: an engine is a file in `engines/`, a
//! row of [`ENGINES`] and a field of [`EngineArgs`].

mod options;
mod records;
mod refuse;
mod software;
mod xdp;

use std::any::Any;
use std::path::Path;

use anyhow::bail;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use toml::Spanned;
use toml::de::{DeTable, Error};
use turboflow_engine::{Abilities, RemoteEngine};
use turboflow_merge::Layout;
use turboflow_record::{Input, InputSet};
use turboflow_run::{Count, EngineConfig, PipelineConfig, RunConfig};

use crate::keys::Key;
pub(crate) use options::EngineOption;
pub(crate) use refuse::refuse_demands;

/// Every engine, the default first.
static ENGINES: [&dyn EngineKind; 3] = [&software::Software, &xdp::Xdp, &records::Records];

/// The engine and its options, as typed.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArgs {
    /// Where packets become microflow records
    #[arg(long, value_name = "ENGINE", default_value = EngineConfig::SOFTWARE)]
    #[arg(value_parser = PossibleValuesParser::new(values()))]
    #[arg(conflicts_with = "read")]
    engine: String,

    #[command(flatten)]
    xdp: xdp::XdpOptions,

    #[command(flatten)]
    records: records::RecordsOptions,
}

impl EngineArgs {
    /// The section `[engine]` that these arguments mean.
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
        options::put(&self.records, &mut config)?;
        Ok(config)
    }
}

/// An engine of this program.
pub(crate) trait EngineKind: Sync {
    /// What it can do, and its name.
    fn abilities(&self) -> Abilities;

    /// What it is, in a sentence without its name.
    fn about(&self) -> &'static str;

    /// An example of its use, for the help of `turboflow record`.
    fn example(&self) -> &'static str {
        ""
    }

    /// The keys of `[engine.NAME]`, each with its flag.
    fn options(&self) -> &'static [&'static EngineOption] {
        &[]
    }

    /// Whether a service can use it: `turboflow run` meters interfaces until it is stopped.
    fn is_for_services(&self) -> bool {
        true
    }

    /// `[engine.NAME]` with every default.
    fn defaults(&self) -> toml::Table {
        toml::Table::new()
    }

    /// Says what is wrong with `[engine.NAME]` as it stands in a file.
    ///
    /// # Errors
    /// The first value that has the wrong type, with its place.
    fn check_written(&self, _table: Spanned<DeTable<'_>>) -> Result<(), Error> {
        Ok(())
    }

    /// Writes the engine's options the one way that they are compared in: all of them, or none
    /// where they are the defaults.
    ///
    /// # Errors
    /// What is wrong with them.
    fn normalise(&self, _config: &mut EngineConfig) -> anyhow::Result<()> {
        Ok(())
    }

    /// The remote engine that a run means; `None` for the engine in this process.
    ///
    /// # Errors
    /// What is wrong with its options.
    fn of(&self, _run: &RunConfig) -> anyhow::Result<Option<Box<dyn RemoteSetup>>> {
        Ok(None)
    }
}

/// A remote engine with its options read, and not opened yet.
pub(crate) trait RemoteSetup: Send + Sync {
    /// The capture file of frames that the engine cannot read, if it is to hand them up.
    fn unparsed_to(&self) -> Option<&Path> {
        None
    }

    /// Options of other sections that this engine does not know, in the words of the user.
    fn unknown_options(&self, _run: &RunConfig) -> Vec<String> {
        Vec::new()
    }

    /// Whether the engine has room for records of that layout.
    ///
    /// # Errors
    /// What there is no room for.
    fn has_room(&self, _layout: &Layout) -> anyhow::Result<()> {
        Ok(())
    }

    /// Says what is wrong with the options, as far as that can be told without opening anything.
    ///
    /// # Errors
    /// The first fault, with its mend.
    fn check(
        &self,
        run: &RunConfig,
        config: &PipelineConfig,
        layout: &Layout,
    ) -> anyhow::Result<()>;

    /// Starts the engine, on all its ports or on none.
    ///
    /// # Errors
    /// Why it cannot start, with the mend.
    fn open(
        &self,
        run: &RunConfig,
        config: &PipelineConfig,
        layout: &Layout,
    ) -> anyhow::Result<OpenEngines>;

    /// Why microflow records are lost between the engine and here, and the mend: the rest of a
    /// sentence.
    fn why_records_are_lost(&self) -> String;
}

/// Remote engines that have started.
pub(crate) struct OpenEngines {
    /// Where their packets or records come from, in words.
    pub(crate) name: String,
    pub(crate) engines: Vec<Box<dyn RemoteEngine>>,
    /// What keeps their ports as they need them, until the run is over.
    pub(crate) held: Vec<Box<dyn Any + Send>>,
}

/// The engine of a run, with its options read.
pub(crate) struct Engine {
    pub(crate) abilities: Abilities,
    /// `None`: packets become microflow records in this process.
    pub(crate) remote: Option<Box<dyn RemoteSetup>>,
}

impl Engine {
    /// The engine that a run names. Refuses options of other engines, which would have no effect.
    pub(crate) fn of(run: &RunConfig) -> anyhow::Result<Self> {
        let kind = kind_of(run)?;
        let name = kind.abilities().name;
        for other in all().filter(|other| other.abilities().name != name) {
            if let Some(option) = options::first_given(other, &run.engine) {
                let other = other.abilities().name;
                bail!(
                    "{} is for engine `{other}`: add {}, or leave it out",
                    Key::Of(option),
                    Key::Engine.with(other)
                );
            }
        }
        Ok(Self {
            abilities: kind.abilities(),
            remote: kind.of(run)?,
        })
    }

    /// The capture file of frames that the engine cannot read, if it is to hand them up.
    pub(crate) fn unparsed_to(&self) -> Option<&Path> {
        self.remote.as_ref()?.unparsed_to()
    }

    /// Why records are lost between the engine and here, and the mend.
    pub(crate) fn why_records_are_lost(&self) -> String {
        let remote = self.remote.as_ref();
        remote.map_or_else(String::new, |remote| remote.why_records_are_lost())
    }
}

/// Every engine.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn EngineKind> {
    ENGINES.iter().copied()
}

/// The engines with what each is, for help texts.
fn values() -> impl Iterator<Item = PossibleValue> {
    all().map(|engine| PossibleValue::new(engine.abilities().name).help(engine.about()))
}

fn names() -> impl Iterator<Item = &'static str> {
    all().map(|engine| engine.abilities().name)
}

/// The engine that a run names.
pub(crate) fn kind_of(run: &RunConfig) -> anyhow::Result<&'static dyn EngineKind> {
    let mut found = all().filter(|engine| engine.abilities().name == run.engine.name);
    match found.next() {
        Some(engine) => Ok(engine),
        None => bail!(
            "{}: there is no such engine; write {}",
            Key::Engine.with(&run.engine.name),
            listed(names())
        ),
    }
}

/// The names of the engines that see all of `inputs`.
pub(crate) fn that_see(inputs: InputSet) -> Vec<&'static str> {
    let sees = |engine: &Abilities| inputs.iter().all(|input| engine.inputs.contains(input));
    let able = all().map(EngineKind::abilities).filter(sees);
    able.map(|engine| engine.name).collect()
}

/// What is said behind an input in a list of inputs, where not every engine sees it.
pub(crate) fn note_on(input: Input) -> String {
    let able = that_see(InputSet::EMPTY.with(input));
    match &able[..] {
        [] => " (not in capture files)".to_owned(),
        [EngineConfig::SOFTWARE, ..] => String::new(),
        able => format!(
            "; not in capture files (engine {})",
            listed(able.iter().copied())
        ),
    }
}

/// Names as a sentence lists alternatives.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(" or ")
}
