// SPDX-License-Identifier: Apache-2.0
//! Options of engines: flags of the program, and keys of `[engine.NAME]`.

use serde::Serialize;
use serde::de::DeserializeOwned;
use turboflow_run::EngineConfig;

use super::EngineKind;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EngineOption {
    /// The flag, without leading dashes.
    pub(crate) flag: &'static str,
    /// `engine.NAME`.
    pub(crate) section: &'static str,
    /// The key in that section.
    pub(crate) name: &'static str,
    /// A TOML value that is not the default.
    pub(crate) example: &'static str,
}

/// The options of one engine as a type.
pub(super) trait Options: Default + PartialEq + Serialize + DeserializeOwned {
    /// The engine's name.
    const ENGINE: &'static str;
}

/// Parses the options of an engine in a run.
pub(super) fn read<O: Options>(config: &EngineConfig) -> anyhow::Result<O> {
    let table = config.options.get(O::ENGINE).cloned();
    Ok(table.map_or_else(|| Ok(O::default()), toml::Table::try_into)?)
}

/// Puts options into a run: all of them, or none if they equal the defaults. Equivalent runs are
/// then equal.
pub(super) fn put<O: Options>(options: &O, config: &mut EngineConfig) -> anyhow::Result<()> {
    config.options.remove(O::ENGINE);
    if *options != O::default() {
        let table = toml::Table::try_from(options)?;
        config.options.insert(O::ENGINE.to_owned(), table);
    }
    Ok(())
}

/// Every option with its default.
pub(super) fn defaults<O: Options>() -> toml::Table {
    toml::Table::try_from(O::default()).unwrap_or_default()
}

/// The first option of an engine whose value is not the default.
pub(super) fn first_given(
    engine: &dyn EngineKind,
    config: &EngineConfig,
) -> Option<&'static EngineOption> {
    let given = config.options.get(engine.abilities().name)?;
    let defaults = engine.defaults();
    let mut options = engine.options().iter().copied();
    options.find(|option| {
        let value = given.get(option.name);
        value.is_some() && value != defaults.get(option.name)
    })
}
