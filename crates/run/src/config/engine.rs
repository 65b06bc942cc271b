// SPDX-License-Identifier: Apache-2.0
//! `[engine]`: which engine runs, and the sections of options for single engines.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};

use super::Count;

/// Keys of the section itself. Any other key is a table with the options of one engine.
const NAME: &str = "name";
const MICROFLOW_SLOTS: &str = "microflow-slots";

/// Which engine runs, and with which options.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineConfig {
    /// The name of the engine.
    pub name: String,
    /// Slots of the microflow table. `None`: the engine's default.
    pub microflow_slots: Option<Count>,
    /// Options by engine name, as written in `[engine.NAME]`. Each engine parses its own table into
    /// its own type.
    pub options: BTreeMap<String, toml::Table>,
}

impl EngineConfig {
    /// The engine in this process.
    pub const SOFTWARE: &str = "software";

    /// Whether packets become microflow records in this process.
    #[must_use]
    pub fn is_software(&self) -> bool {
        self.name == Self::SOFTWARE
    }

    /// Whether an engine waits for what other hosts send: its options have addresses in `listen`.
    #[must_use]
    pub fn listens(&self) -> bool {
        let addresses = self
            .options
            .values()
            .filter_map(|table| table.get("listen"));
        let mut lists = addresses.filter_map(toml::Value::as_array);
        lists.any(|list| !list.is_empty())
    }
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            name: Self::SOFTWARE.to_owned(),
            microflow_slots: None,
            options: BTreeMap::new(),
        }
    }
}

impl Serialize for EngineConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(NAME, &self.name)?;
        if let Some(slots) = &self.microflow_slots {
            map.serialize_entry(MICROFLOW_SLOTS, slots)?;
        }
        for (name, options) in &self.options {
            map.serialize_entry(name, options)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for EngineConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Section;
        impl<'de> Visitor<'de> for Section {
            type Value = EngineConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a section")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EngineConfig, A::Error> {
                let mut engine = EngineConfig::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        NAME => engine.name = map.next_value()?,
                        MICROFLOW_SLOTS => engine.microflow_slots = Some(map.next_value()?),
                        _ => match map.next_value()? {
                            toml::Value::Table(options) => {
                                engine.options.insert(key, options);
                            }
                            _ => {
                                return Err(A::Error::unknown_field(
                                    &key,
                                    &[NAME, MICROFLOW_SLOTS],
                                ));
                            }
                        },
                    }
                }
                Ok(engine)
            }
        }
        deserializer.deserialize_map(Section)
    }
}
