// SPDX-License-Identifier: Apache-2.0
//! Options of engines: flags of the program, and keys of `[engine.NAME]`.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, Deserializer, Error};
use turboflow_run::{EngineConfig, RunConfig, SourceConfig};

use super::{EngineKind, RemoteSetup};
use crate::keys::Key;

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

impl EngineOption {
    pub(super) const fn of(
        section: &'static str,
        flag: &'static str,
        name: &'static str,
        example: &'static str,
    ) -> Self {
        Self {
            flag,
            section,
            name,
            example,
        }
    }
}

/// The options of one engine as a type.
pub(super) trait Options: Default + PartialEq + Serialize + DeserializeOwned {
    /// The engine's name.
    const ENGINE: &'static str;
}

/// The section `[engine.NAME]`, without the Rust type of the engine's options.
pub(crate) trait WrittenOptions {
    /// Every option that has a default.
    fn defaults(&self) -> toml::Table;

    /// Checks the types of the values, while their positions in the file are still known.
    ///
    /// # Errors
    /// The first value of the wrong type, with its position.
    fn check(&self, table: Spanned<DeTable<'_>>) -> Result<(), Error>;

    /// Normalises the engine's options for comparison: all of them, or none if they equal the
    /// defaults.
    ///
    /// # Errors
    /// The options are invalid.
    fn normalise(&self, config: &mut EngineConfig) -> anyhow::Result<()>;
}

/// [`WrittenOptions`] of an engine with options of type `O`.
pub(super) struct WrittenAs<O>(PhantomData<fn() -> O>);

impl<O> WrittenAs<O> {
    pub(super) const HERE: Self = Self(PhantomData);
}

impl<O: Options> WrittenOptions for WrittenAs<O> {
    fn defaults(&self) -> toml::Table {
        toml::Table::try_from(O::default()).unwrap_or_default()
    }

    fn check(&self, table: Spanned<DeTable<'_>>) -> Result<(), Error> {
        O::deserialize(Deserializer::from(table)).map(drop)
    }

    fn normalise(&self, config: &mut EngineConfig) -> anyhow::Result<()> {
        put(&read::<O>(config)?, config)
    }
}

/// Parses the options of an engine in a run.
pub(super) fn read<O: Options>(config: &EngineConfig) -> anyhow::Result<O> {
    let table = config.options.get(O::ENGINE).cloned();
    Ok(table.map_or_else(|| Ok(O::default()), toml::Table::try_into)?)
}

/// [`EngineKind::remote_engine`] of an engine with options of type `O`.
pub(super) fn setup<O: Options + RemoteSetup + 'static>(
    run: &RunConfig,
) -> anyhow::Result<Option<Box<dyn RemoteSetup>>> {
    Ok(Some(Box::new(read::<O>(&run.engine)?)))
}

/// Stores options in a run: all of them, or none if they equal the defaults, so that equivalent
/// runs compare equal.
pub(super) fn put<O: Options>(options: &O, config: &mut EngineConfig) -> anyhow::Result<()> {
    config.options.remove(O::ENGINE);
    if *options != O::default() {
        let table = toml::Table::try_from(options)?;
        config.options.insert(O::ENGINE.to_owned(), table);
    }
    Ok(())
}

/// Whether the kernel's ring has another size than by default.
pub(super) fn has_ring_size(run: &RunConfig) -> bool {
    run.source.ring_size != SourceConfig::default().ring_size
}

/// The names of the options that are given.
pub(super) fn given<const N: usize>(options: [(bool, Key); N]) -> Vec<String> {
    let given = options.into_iter().filter(|(is_given, _)| *is_given);
    given.map(|(_, key)| key.to_string()).collect()
}

/// The first option of an engine whose value is not the default.
pub(super) fn first_given(
    engine: &dyn EngineKind,
    config: &EngineConfig,
) -> Option<&'static EngineOption> {
    let given = config.options.get(engine.abilities().name)?;
    let defaults = engine.written()?.defaults();
    let mut options = engine.options().iter().copied();
    options.find(|option| {
        let value = given.get(option.name);
        value.is_some() && value != defaults.get(option.name)
    })
}
