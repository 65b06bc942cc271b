// SPDX-License-Identifier: Apache-2.0
//! Columns as IPFIX information elements (RFC 7012).
//!
//! A column uses the IANA element that has exactly its meaning, if there is one. Otherwise it uses
//! an enterprise-specific element ([`enterprise`]) whose number follows from op and input, so that
//! a number means the same in every definition and version.

mod enterprise;
mod iana;
pub(crate) mod registry;
#[cfg(test)]
mod tests;

use crate::check::{END_REASON, REVERSE};
use crate::{Definition, Feature, KeyField, Op};

pub use enterprise::DOCUMENTATION_ENTERPRISE;
pub use iana::{BASIC_LIST, REVERSE_ENTERPRISE};
pub use registry::{DataType, Semantics, TimeUnit, Units};

/// One information element, as in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// The number, from 1 to 32,767. 0 if there is none, as for `nth` over both directions of a
    /// biflow.
    pub id: u16,
    /// The private enterprise number; `None` for IANA elements.
    pub enterprise: Option<u32>,
    /// The name, in lower camel case (RFC 7013, section 4.1).
    pub name: String,
    /// The type of its values.
    pub data_type: DataType,
    /// The semantics of its values.
    pub semantics: Semantics,
    /// The unit of its values.
    pub units: Units,
    /// A one-line description.
    pub description: String,
    /// Octets of a value on the wire: the size of the type, or less (RFC 7011, section 6.2). 0 for
    /// texts, which are sent with their length (section 7).
    pub bytes: u8,
}

/// The elements of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnElement {
    /// The element in records of IPv4, and in records without a family.
    pub v4: Element,
    /// The element in records of IPv6. It differs where IANA has one element per family.
    pub v6: Element,
    /// Whether values are lists, sent as a basicList (RFC 6313) of the element.
    pub is_list: bool,
}

/// How columns map to elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementOptions {
    /// The private enterprise number of enterprise-specific elements. Default:
    /// [`DOCUMENTATION_ENTERPRISE`].
    pub enterprise: u32,
    /// The elements that carry times. Default: milliseconds.
    pub time: TimeUnit,
}

impl Default for ElementOptions {
    fn default() -> Self {
        Self {
            enterprise: DOCUMENTATION_ENTERPRISE,
            time: TimeUnit::Milliseconds,
        }
    }
}

/// Which packets of a biflow a feature covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Packets in the direction of the record.
    Forward,
    /// Packets in the reverse direction (RFC 5103).
    Reverse,
    /// Packets of both directions of a biflow.
    Joined,
}

impl Definition {
    /// The information elements of all columns, in the order of `Layout::schema`.
    ///
    /// If an IANA element suits several columns, only the first one gets it, because a template
    /// must not contain an element twice.
    #[must_use]
    pub fn elements(&self, biflow: bool, options: &ElementOptions) -> Vec<ColumnElement> {
        let has_family = self.key.iter().any(|field| {
            matches!(
                field,
                KeyField::SourceAddress | KeyField::DestinationAddress
            )
        });
        let mut mapper = Mapper {
            options,
            has_family,
            columns: Vec::new(),
        };
        self.key.iter().for_each(|field| mapper.key(*field));
        let joined = |feature: &Feature| biflow && feature.is_joined();
        for feature in &self.features {
            // A property of the whole flow means the same in both kinds of records.
            let side = match joined(feature) && !feature.is_of_flow() {
                true => Side::Joined,
                false => Side::Forward,
            };
            mapper.feature(feature, side);
        }
        if biflow {
            let split = self.features.iter().filter(|feature| !joined(feature));
            split.for_each(|feature| mapper.feature(feature, Side::Reverse));
        }
        mapper.add(iana::end_reason());
        mapper.columns
    }
}

struct Mapper<'a> {
    options: &'a ElementOptions,
    /// Whether each record is either of IPv4 or of IPv6.
    has_family: bool,
    columns: Vec<ColumnElement>,
}

impl Mapper<'_> {
    fn key(&mut self, field: KeyField) {
        let found = iana::of_key(field, self.has_family).filter(|pair| self.is_free(pair));
        let column = found.unwrap_or_else(|| enterprise::of_key(field, self.options.enterprise));
        self.add(column);
    }

    fn feature(&mut self, feature: &Feature, side: Side) {
        let is_list = matches!(feature.op, Op::List { .. } | Op::Histogram { .. });
        let found = match side {
            Side::Joined => None,
            _ if is_list => None,
            Side::Forward => iana::of_feature(feature, self.options.time, self.has_family),
            Side::Reverse => {
                iana::of_feature(feature, self.options.time, self.has_family).map(iana::reversed)
            }
        };
        let found = found.filter(|pair| self.is_free(pair));
        let column =
            found.unwrap_or_else(|| enterprise::of_feature(feature, side, self.options.enterprise));
        self.add(column);
    }

    fn is_free(&self, wanted: &ColumnElement) -> bool {
        let same = |a: &Element, b: &Element| (a.id, a.enterprise) == (b.id, b.enterprise);
        !self
            .columns
            .iter()
            .any(|taken| same(&taken.v4, &wanted.v4) || same(&taken.v6, &wanted.v6))
    }

    fn add(&mut self, column: ColumnElement) {
        self.columns.push(column);
    }
}

impl ColumnElement {
    /// One element for the records of both families.
    fn of(element: Element) -> Self {
        Self {
            v6: element.clone(),
            v4: element,
            is_list: false,
        }
    }
}

/// A name from a definition in upper camel case: `tcp_flags` becomes `TcpFlags`.
fn camel(name: &str) -> String {
    let mut words = String::new();
    for word in name.split('_') {
        let (first, rest) = word.split_at(word.len().min(1));
        words.push_str(&first.to_uppercase());
        words.push_str(rest);
    }
    words
}

/// The name with its first letter in lower case, as in information elements.
fn lower_first(name: &str) -> String {
    let (first, rest) = name.split_at(name.len().min(1));
    first.to_lowercase() + rest
}

/// The name of an element in the reverse direction (RFC 5103, section 6.1).
fn reverse_name(name: &str) -> String {
    let prefix = REVERSE.trim_end_matches('_');
    let (first, rest) = name.split_at(name.len().min(1));
    format!("{prefix}{}{rest}", first.to_uppercase())
}
