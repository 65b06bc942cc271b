// SPDX-License-Identifier: Apache-2.0
//! Additional columns for batches.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use turboflow_record::{Column, ColumnKind, FlowBatch, Value, Values};

use crate::Enrichment;
use crate::database::System;
use crate::networks::Place;

/// Maximum number of addresses for which results are cached: about 200 MB.
const ADDRESSES_MAX: usize = 1 << 20;

/// The two sides of a record.
const SIDES: [&str; 2] = ["src", "dst"];

/// Makes columns from what an [`Enrichment`] knows about the values in certain columns of records.
pub struct Enricher {
    enrichment: Arc<Enrichment>,
    columns: Vec<(Column, Derived)>,
    taken: Vec<String>,
    known: HashMap<IpAddr, Known>,
}

/// What is known about an address.
#[derive(Clone, Debug, Default)]
struct Known {
    name: Option<String>,
    system: System,
    country: Option<String>,
    place: Place,
}

/// What a column is derived from, by the indices of the source columns.
#[derive(Clone, Copy)]
enum Derived {
    OfAddress(usize, Part),
    Service { port: usize, protocol: usize },
}

/// Which part of [`Known`].
#[derive(Clone, Copy)]
enum Part {
    Name,
    System,
    SystemName,
    Country,
    Site,
    Owner,
}

impl Enricher {
    /// Binds an enrichment to records with the columns of `schema`. If the records have no
    /// addresses, there are no columns about addresses; a column that the records already have is
    /// kept unchanged.
    #[must_use]
    pub fn new(enrichment: impl Into<Arc<Enrichment>>, schema: &[Column]) -> Self {
        let enrichment = enrichment.into();
        let place = |name: &str| schema.iter().position(|column| column.name == name);
        let text = ColumnKind::Text;
        let of_addresses = [
            (enrichment.hosts.is_some(), "name", Part::Name, text),
            (
                enrichment.systems.is_some(),
                "as",
                Part::System,
                ColumnKind::Unsigned { bits: 32 },
            ),
            (
                enrichment.systems.is_some(),
                "as_name",
                Part::SystemName,
                text,
            ),
            (
                enrichment.countries.is_some(),
                "country",
                Part::Country,
                text,
            ),
            (enrichment.networks.is_some(), "site", Part::Site, text),
            (enrichment.networks.is_some(), "owner", Part::Owner, text),
        ];
        let (mut columns, mut taken) = (Vec::new(), Vec::new());
        let mut add = |name: String, kind, derived| match place(&name) {
            Some(_) => taken.push(name),
            None => {
                let nullable = true;
                columns.push((
                    Column {
                        name,
                        kind,
                        nullable,
                    },
                    derived,
                ));
            }
        };
        for side in SIDES {
            if let Some(address) = place(&format!("{side}_addr")) {
                for (is_known, what, part, kind) in of_addresses {
                    if is_known {
                        add(
                            format!("{side}_{what}"),
                            kind,
                            Derived::OfAddress(address, part),
                        );
                    }
                }
            }
            let port = place(&format!("{side}_port")).zip(place("protocol"));
            if let Some((port, protocol)) = port.filter(|_| enrichment.services.is_some()) {
                let derived = Derived::Service { port, protocol };
                add(format!("{side}_service"), text, derived);
            }
        }
        Self {
            enrichment,
            columns,
            taken,
            known: HashMap::new(),
        }
    }

    /// The additional columns.
    pub fn columns(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().map(|(column, _)| column)
    }

    /// Names of columns that are not made because the records already have them.
    #[must_use]
    pub fn taken(&self) -> &[String] {
        &self.taken
    }

    /// The indices of the columns from which column `index` of [`Enricher::columns`] is derived.
    #[must_use]
    pub fn sources(&self, index: usize) -> Vec<usize> {
        match self.columns[index].1 {
            Derived::OfAddress(address, _) => vec![address],
            Derived::Service { port, protocol } => vec![port, protocol],
        }
    }

    /// The values of column `index` for the records of a batch.
    pub fn values(&mut self, index: usize, batch: &FlowBatch) -> Values {
        let (column, derived) = &self.columns[index];
        let mut values = Values::none(column.kind);
        match *derived {
            Derived::OfAddress(address, part) => {
                for row in 0..batch.rows() {
                    let Value::Address(address) = batch.value(row, address) else {
                        values.push(Value::Absent);
                        continue;
                    };
                    if self.known.len() > ADDRESSES_MAX {
                        self.known.clear();
                    }
                    let enrichment = &self.enrichment;
                    let known = self
                        .known
                        .entry(address)
                        .or_insert_with(|| enrichment.of(address));
                    values.push(known.value(part));
                }
            }
            Derived::Service { port, protocol } => {
                for row in 0..batch.rows() {
                    let value = |column| match batch.value(row, column) {
                        Value::Unsigned(number) => Some(number),
                        _ => None,
                    };
                    let service = value(protocol).zip(value(port));
                    values.push_text(
                        service.and_then(|(its, port)| self.enrichment.service(its, port)),
                    );
                }
            }
        }
        values
    }
}

impl Known {
    fn value(&self, part: Part) -> Value<'_> {
        let text = match part {
            Part::System => {
                let number = self.system.number.map(u64::from);
                return number.map_or(Value::Absent, Value::Unsigned);
            }
            Part::Name => &self.name,
            Part::SystemName => &self.system.name,
            Part::Country => &self.country,
            Part::Site => &self.place.site,
            Part::Owner => &self.place.owner,
        };
        text.as_deref().map_or(Value::Absent, Value::Text)
    }
}

impl Enrichment {
    /// What is known about an address.
    fn of(&self, address: IpAddr) -> Known {
        let clean = |text: Option<String>| {
            let text = turboflow_record::clean_text(&text?).to_string();
            (!text.is_empty()).then_some(text)
        };
        let system = self.systems.as_ref().map(|its| its.find(address));
        let System { number, name } = system.unwrap_or_default();
        let place = self.networks.as_ref().and_then(|its| its.find(address));
        Known {
            name: self
                .hosts
                .as_ref()
                .and_then(|hosts| hosts.get(&address).cloned()),
            system: System {
                number,
                name: clean(name),
            },
            country: clean(self.countries.as_ref().and_then(|its| its.find(address))),
            place: place.cloned().unwrap_or_default(),
        }
    }

    fn service(&self, protocol: u64, port: u64) -> Option<&str> {
        let key = (u8::try_from(protocol).ok()?, u16::try_from(port).ok()?);
        self.services.as_ref()?.get(&key).map(String::as_str)
    }
}
