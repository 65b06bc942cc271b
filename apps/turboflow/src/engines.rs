// SPDX-License-Identifier: Apache-2.0
//! The engines that this program has, and the options of each: `[engine.NAME]` of a configuration.

use std::path::PathBuf;

use anyhow::bail;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use turboflow_run::RunConfig;

use crate::keys::Key;

/// Where packets become microflow records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// In this program.
    Software,
    /// In the Linux kernel.
    Xdp,
}

/// Where a packet meets the engine in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// Native if the driver can.
    #[default]
    Auto,
    /// In the driver.
    Native,
    /// Behind it.
    Generic,
}

/// Whose the microflow tables of the engine in the kernel are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Table {
    /// One for each CPU.
    #[default]
    PerCpu,
    /// One for all, with a lock for each row.
    RowLock,
}

/// What stamps packets in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Clock {
    /// Nanoseconds.
    #[default]
    Precise,
    /// The kernel's tick.
    Coarse,
}

/// `[engine.xdp]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct XdpOptions {
    pub(crate) mode: Mode,
    pub(crate) table: Table,
    pub(crate) clock: Clock,
    /// Packets end once they are metered.
    pub(crate) drop: bool,
    /// Another program's place is taken.
    pub(crate) replace: bool,
    /// The capture file of frames that are no packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unparsed_to: Option<PathBuf>,
}

/// The engine of a run, with its options.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Engine {
    Software,
    Xdp(XdpOptions),
}

impl EngineName {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Software => "software",
            Self::Xdp => "xdp",
        }
    }

    pub(crate) fn of(run: &RunConfig) -> anyhow::Result<Self> {
        let named = Self::value_variants().iter();
        let mut found = named.filter(|engine| engine.as_str() == run.engine.name);
        match found.next() {
            Some(engine) => Ok(*engine),
            None => bail!(
                "{}: there is no such engine; write {}",
                Key::Engine.with(&run.engine.name),
                names()
            ),
        }
    }
}

/// The engines' names, for people.
pub(crate) fn names() -> String {
    let names = EngineName::value_variants().iter();
    names
        .map(|engine| engine.as_str())
        .collect::<Vec<_>>()
        .join(" or ")
}

impl Engine {
    /// The engine that a run names; refuses options that it would pass over in silence.
    pub(crate) fn of(run: &RunConfig) -> anyhow::Result<Self> {
        let options = XdpOptions::of(run)?;
        match EngineName::of(run)? {
            EngineName::Software => {
                options.refuse_elsewhere()?;
                Ok(Self::Software)
            }
            EngineName::Xdp => Ok(Self::Xdp(options)),
        }
    }
}

impl Engine {
    /// The capture file of frames that are no packet.
    pub(crate) const fn unparsed_to(&self) -> Option<&PathBuf> {
        match self {
            Self::Software => None,
            Self::Xdp(options) => options.unparsed_to.as_ref(),
        }
    }
}

impl XdpOptions {
    pub(crate) fn of(run: &RunConfig) -> anyhow::Result<Self> {
        let options = run.engine.options.get(EngineName::Xdp.as_str());
        Ok(options
            .cloned()
            .map_or_else(|| Ok(Self::default()), toml::Table::try_into)?)
    }

    /// Puts these options into a run: all of them, or none where they are the defaults, so that runs
    /// that mean the same are equal.
    pub(crate) fn say_to(&self, run: &mut RunConfig) -> anyhow::Result<()> {
        let name = EngineName::Xdp.as_str();
        run.engine.options.remove(name);
        if *self != Self::default() {
            let options = toml::Table::try_from(self)?;
            run.engine.options.insert(name.to_owned(), options);
        }
        Ok(())
    }

    /// Options that the software engine would pass over in silence.
    fn refuse_elsewhere(&self) -> anyhow::Result<()> {
        if self.unparsed_to.is_some() {
            bail!(
                "{} is for the engine in the kernel ({}): of files and with the software engine, \
                 `tcpdump` has the frames, and the ledger says by reason how many are no packet",
                Key::UnparsedTo,
                Key::Engine.with("xdp"),
            );
        }
        let given = [
            (self.mode != Mode::Auto, Key::XdpMode),
            (self.table != Table::PerCpu, Key::XdpTable),
            (self.clock != Clock::Precise, Key::XdpClock),
            (self.drop, Key::XdpDrop),
            (self.replace, Key::XdpReplace),
        ];
        match given.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => bail!(
                "{option} is for the engine in the kernel: add {}, or leave it out",
                Key::Engine.with("xdp")
            ),
            None => Ok(()),
        }
    }
}
