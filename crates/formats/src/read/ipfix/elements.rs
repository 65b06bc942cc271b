// SPDX-License-Identifier: Apache-2.0
//! Information elements as columns.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use turboflow_merge::Layout;
use turboflow_record::{
    Column, ColumnKind, DataType, Definition, Element, ElementOptions, Feature, Input, KeyField,
    Op, Schema, TimeUnit,
};

use super::applications::{self, Applications};
use super::definition::Own;
use super::messages::{ElementId, VARIABLE, Value};
use crate::read::kinds::{Parsed, Parts};

/// The column of an element.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) column: usize,
    pub(super) of_type: OfType,
}

/// How the octets of an element are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfType {
    Address,
    Float,
    Mac,
    Number,
    /// A signed number in two's complement. Columns cannot hold negative numbers.
    Signed,
    /// A number of units since 1970; the unit in nanoseconds.
    Time(u64),
    /// Seconds since 1900 and a fraction, with a resolution in nanoseconds.
    Ntp(u64),
    /// UTF-8.
    Text,
    /// An applicationId, whose name is in other records.
    Application,
}

/// Limit on the names that a file gives to elements.
const NAMED_MAX: usize = 32_768;
const NAME_BYTES_MAX: usize = 256;

/// The elements of a file, and what is known about them.
#[derive(Default)]
pub(super) struct Elements {
    /// The elements that records have, in the order in which they are seen.
    seen: Vec<Seen>,
    /// Their indices in `seen`.
    places: HashMap<ElementId, usize>,
    /// Names and types that the file gives. The type is `None` if columns do not have it.
    named: HashMap<ElementId, (String, Option<OfType>)>,
    known: HashMap<ElementId, Known>,
    own: Own,
    applications: Applications,
}

struct Seen {
    element: ElementId,
    is_list: bool,
    /// Whether some value of a signed type is below zero.
    is_negative: bool,
}

/// ingressInterface and egressInterface, which the writer adds if all records are of one interface.
const INTERFACES: [ElementId; 2] = [(None, 10), (None, 14)];

/// Limit on the number of distinct elements in the records of a file.
const ELEMENTS_MAX: usize = 1_024;

/// An element of the definitions that this crate knows: name, type, and position among the columns.
type Usual = (String, OfType, usize);

/// Ids of the elements with which a file describes other elements (RFC 5610, section 3.9).
const ELEMENT_ID: u16 = 303;
const ENTERPRISE: u16 = 346;
const TYPE: u16 = 339;
const NAME: u16 = 341;

/// The names of the columns of a definition, including those of biflows.
fn biflow_names(definition: &Definition) -> Vec<String> {
    let layout = Layout::compile(definition, true).expect("these definitions compile");
    let columns = layout.schema().iter();
    columns.map(|column| column.name.clone()).collect()
}

/// The columns of the default definition and of a bridge, including biflows, and all key fields.
static USUAL: LazyLock<HashMap<ElementId, Usual>> = LazyLock::new(|| {
    let mut usual = HashMap::new();
    let definition = Definition::default().with_verdicts();
    let names = biflow_names(&definition);
    let keys = Definition {
        key: KeyField::all().collect(),
        ..Definition::default()
    };
    let key_names = KeyField::all().map(|field| field.column_name().to_owned());
    let key_names: Vec<String> = key_names.collect();
    let inspected = Input::INSPECTED.into_iter();
    let inspected = Definition {
        key: vec![KeyField::Protocol],
        features: inspected
            .map(|input| Feature::new(input.name(), Op::Last, Some(input)))
            .collect(),
    };
    let of_flow = std::iter::once("protocol").chain(Input::INSPECTED.into_iter().map(Input::name));
    let of_flow: Vec<String> = of_flow.map(str::to_owned).collect();
    for time in [
        TimeUnit::Milliseconds,
        TimeUnit::Microseconds,
        TimeUnit::Nanoseconds,
    ] {
        let options = ElementOptions {
            time,
            ..ElementOptions::default()
        };
        let mut add = |names: &[String], elements: Vec<turboflow_record::ColumnElement>| {
            for (place, (name, mapped)) in names.iter().zip(elements).enumerate() {
                for element in [mapped.v4, mapped.v6] {
                    let Some(of_type) = of_element(&element) else {
                        continue;
                    };
                    let id = (element.enterprise, element.id);
                    usual.entry(id).or_insert((name.clone(), of_type, place));
                }
            }
        };
        add(&names, definition.elements(true, &options));
        add(&key_names, keys.elements(false, &options));
        add(&of_flow, inspected.elements(false, &options));
    }
    let name = Input::Application.name().to_owned();
    let place = usual[&(None, applications::ID)].2;
    usual.insert((None, applications::NAME), (name, OfType::Text, place));
    usual
});

/// How the octets of one of our elements are read.
pub(super) fn of_element(element: &Element) -> Option<OfType> {
    match element.data_type {
        DataType::OctetArray => Some(OfType::Application),
        data_type => of_type(data_type as u64),
    }
}

/// The data type with that number in IANA's registry.
pub(super) fn of_type(number: u64) -> Option<OfType> {
    let is = |data_type: DataType| number == data_type as u64;
    Some(match number {
        // Octets without a meaning (type 0, octetArray) are not a number.
        1..=4 => OfType::Number,
        5..=8 => OfType::Signed,
        9 | 10 => OfType::Float,
        14 => OfType::Time(1_000_000_000),
        _ if is(DataType::MacAddress) => OfType::Mac,
        _ if is(DataType::String) => OfType::Text,
        _ if is(DataType::DateTimeMilliseconds) => OfType::Time(1_000_000),
        _ if is(DataType::DateTimeMicroseconds) => OfType::Ntp(1_000),
        _ if is(DataType::DateTimeNanoseconds) => OfType::Ntp(1),
        _ if is(DataType::Ipv4Address) || is(DataType::Ipv6Address) => OfType::Address,
        _ => return None,
    })
}

impl Elements {
    /// Notes the element of a value.
    ///
    /// # Errors
    /// If there are more elements than records can have.
    pub(super) fn see(&mut self, value: &Value<'_>) -> Result<(), String> {
        let is_list = value.list.is_some_and(|(_, is_one_value)| !is_one_value);
        let is_negative = value.octets.first().is_some_and(|octet| octet >> 7 == 1);
        let seen = self.see_element(value.element, is_list)?;
        seen.is_negative |= is_negative;
        Ok(())
    }

    /// Notes an element of a template for which no record was found.
    ///
    /// # Errors
    /// As [`Elements::see`].
    pub(super) fn see_field(&mut self, element: ElementId) -> Result<(), String> {
        self.see_element(element, false).map(|_| ())
    }

    fn see_element(&mut self, element: ElementId, is_list: bool) -> Result<&mut Seen, String> {
        let place = *self.places.entry(element).or_insert(self.seen.len());
        if place == self.seen.len() {
            if place == ELEMENTS_MAX {
                return Err(format!(
                    "more than {ELEMENTS_MAX} information elements: no flow records"
                ));
            }
            self.seen.push(Seen {
                element,
                is_list,
                is_negative: false,
            });
        }
        Ok(&mut self.seen[place])
    }

    /// Learns from an options record the name of an element, or the definition of the records.
    ///
    /// # Errors
    /// If there are more than a file may have.
    pub(super) fn learn(&mut self, values: &[Value<'_>]) -> Result<(), String> {
        self.own.learn(values);
        self.applications.learn(values)?;
        self.learn_name(values)
    }

    /// The definition of the records, if the file contains it.
    pub(super) fn definition(&self) -> Option<Definition> {
        self.own.definition().cloned()
    }

    fn learn_name(&mut self, values: &[Value<'_>]) -> Result<(), String> {
        let octets = |id: u16| {
            let found = values.iter().find(|value| value.element == (None, id));
            found.map(|value| value.octets)
        };
        let (Some(id), Some(name), Some(data_type)) =
            (octets(ELEMENT_ID), octets(NAME), octets(TYPE))
        else {
            return Ok(());
        };
        let small = |octets: &[u8]| (octets.len() <= 8).then(|| number(octets));
        let enterprise = octets(ENTERPRISE)
            .and_then(small)
            .filter(|number| *number > 0);
        let enterprise = enterprise.and_then(|number| u32::try_from(number).ok());
        let id = small(id).and_then(|id| u16::try_from(id).ok());
        let (Some(id), Some(data_type)) = (id, small(data_type)) else {
            return Ok(());
        };
        let name = String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)]);
        self.named.insert(
            (enterprise, id & 0x7fff),
            (words(&name), of_type(data_type)),
        );
        match self.named.len() {
            0..=NAMED_MAX => Ok(()),
            _ => Err(format!(
                "more than {NAMED_MAX} names of information elements: no flow records"
            )),
        }
    }

    /// The columns, and descriptions of the elements that do not become columns.
    pub(super) fn columns(&mut self) -> (Schema, Vec<String>) {
        if let Some((schema, known)) = self.own.columns() {
            let others = self.seen.iter().map(|seen| seen.element);
            let others = others
                .filter(|element| !known.contains_key(element) && !INTERFACES.contains(element));
            let left_out = others.map(|element| self.describe(element, None)).collect();
            self.known = known;
            return (schema, left_out);
        }
        let mut left_out = Vec::new();
        let mut columns: Vec<(usize, Column)> = Vec::new();
        let mut names: HashMap<String, (ColumnKind, bool)> = HashMap::new();
        let mut taken: Vec<(ElementId, String, OfType)> = Vec::new();
        // Elements that are known by their id get their names before elements that the file names.
        let mut seen: Vec<(usize, &Seen)> = self.seen.iter().enumerate().collect();
        seen.sort_by_key(|(_, seen)| !USUAL.contains_key(&seen.element));
        for (index, seen) in seen {
            let element = seen.element;
            let usual = USUAL.get(&element).cloned();
            let is_usual = usual.is_some();
            let told = || {
                let (name, of_type) = self.named.get(&element)?;
                Some((name.clone(), (*of_type)?, USUAL.len() + index))
            };
            let Some((name, of_type, place)) = usual.or_else(told) else {
                left_out.push(self.describe(element, None));
                continue;
            };
            if of_type == OfType::Signed && seen.is_negative {
                left_out.push(self.describe(element, Some("negative numbers")));
                continue;
            }
            let kind = kind_of(of_type, seen.is_list);
            match names.get(&name) {
                // The elements for both address families form one column.
                Some(&(its, by_number)) if its == kind && by_number == is_usual => {}
                Some(_) => {
                    left_out.push(self.describe(element, Some("a second column of that name")));
                    continue;
                }
                None => {
                    names.insert(name.clone(), (kind, is_usual));
                    let column = Column {
                        name: name.clone(),
                        kind,
                        nullable: true,
                    };
                    columns.push((place, column));
                }
            }
            taken.push((element, name, of_type));
        }
        columns.sort_by_key(|(place, _)| *place);
        let schema: Schema = columns.into_iter().map(|(_, column)| column).collect();
        let schema = whole_default(&schema).unwrap_or(schema);
        self.map_to(&schema, taken);
        (schema, left_out)
    }

    /// Maps each element to its column in a schema.
    fn map_to(&mut self, schema: &Schema, taken: Vec<(ElementId, String, OfType)>) {
        let places = schema.iter().enumerate();
        let places: HashMap<&str, usize> = places.map(|(at, its)| (&*its.name, at)).collect();
        for (element, name, of_type) in taken {
            let column = places[&*name];
            self.known.insert(element, Known { column, of_type });
        }
    }

    /// Maps the values of the columns `before` to the columns of the same name in `schema`.
    pub(super) fn rearrange(&mut self, before: &Schema, schema: &Schema) {
        let places = schema.iter().enumerate();
        let places: HashMap<&str, usize> = places.map(|(at, its)| (&*its.name, at)).collect();
        self.known.retain(|_, known| {
            let place = places.get(&*before[known.column].name);
            known.column = place.copied().unwrap_or(0);
            place.is_some()
        });
    }

    /// Describes an element: its number, its name if the file gives it, and `what` it holds.
    fn describe(&self, element: ElementId, what: Option<&str>) -> String {
        let number = match element {
            (None, id) => format!("information element {id}"),
            (Some(enterprise), id) => format!("information element {enterprise}/{id}"),
        };
        let usual = USUAL.get(&element).map(|(name, ..)| name);
        let name = usual.or_else(|| self.named.get(&element).map(|(name, _)| name));
        let more: Vec<&str> = name.map(String::as_str).into_iter().chain(what).collect();
        match more.is_empty() {
            true => number,
            false => format!("{number} ({})", more.join(", ")),
        }
    }

    /// The column of a value.
    pub(super) fn of(&self, value: &Value<'_>) -> Option<&Known> {
        self.known.get(&value.element)
    }
}

fn kind_of(of_type: OfType, is_list: bool) -> ColumnKind {
    match of_type {
        _ if is_list => ColumnKind::List,
        OfType::Address => ColumnKind::Address,
        OfType::Float => ColumnKind::Float,
        OfType::Mac => ColumnKind::Mac,
        OfType::Number | OfType::Signed => ColumnKind::Unsigned { bits: 64 },
        OfType::Time(_) | OfType::Ntp(_) => ColumnKind::TimestampNs,
        OfType::Text | OfType::Application => ColumnKind::Text,
    }
}

/// All columns of the default definition, if `columns` are some of them and lack none that is never
/// absent. (Templates leave out absent values, so files of the same run would differ otherwise.)
fn whole_default(columns: &Schema) -> Option<Schema> {
    let names: HashSet<&str> = columns.iter().map(|column| &*column.name).collect();
    [false, true].into_iter().find_map(|is_biflow| {
        let layout = Layout::compile(&Definition::default(), is_biflow).ok()?;
        let mut whole = layout.schema().clone();
        let all: HashSet<&str> = whole.iter().map(|column| &*column.name).collect();
        let has_needed = whole
            .iter()
            .all(|column| column.nullable || names.contains(&*column.name));
        if !has_needed || !names.is_subset(&all) {
            return None;
        }
        for column in &mut whole {
            column.nullable = true;
            if let ColumnKind::Unsigned { bits } = &mut column.kind {
                *bits = 64;
            }
        }
        let is_same = columns.iter().all(|column| {
            whole
                .iter()
                .any(|its| its.name == column.name && its.kind == column.kind)
        });
        is_same.then_some(whole)
    })
}

/// A value of a record; the elements of a list are appended to `elements`.
///
/// # Errors
/// What does not fit.
pub(super) fn value_of(
    value: &Value<'_>,
    of_type: OfType,
    kind: ColumnKind,
    parts: &mut Parts,
    of: &Elements,
) -> Result<Parsed, String> {
    let parsed = parsed(value, of_type, parts, &of.applications)?;
    let fits = match (parsed, kind) {
        (Parsed::Absent, _)
        | (Parsed::Address(_), ColumnKind::Address)
        | (Parsed::Float(_), ColumnKind::Float)
        | (Parsed::List { .. }, ColumnKind::List)
        | (Parsed::Text { .. }, ColumnKind::Text)
        | (Parsed::Unsigned(_), ColumnKind::Mac | ColumnKind::TimestampNs) => true,
        (Parsed::Unsigned(number), ColumnKind::Unsigned { bits }) => {
            number.checked_shr(bits.into()).unwrap_or(0) == 0
        }
        _ => false,
    };
    match (fits, parsed, kind) {
        (true, ..) => Ok(parsed),
        (false, Parsed::List { .. }, _) => Err("it is not a list in other records".to_owned()),
        (false, _, ColumnKind::List) => Err("it is a list in other records".to_owned()),
        (false, ..) => Err("it is of another type in other records".to_owned()),
    }
}

fn parsed(
    value: &Value<'_>,
    of_type: OfType,
    parts: &mut Parts,
    applications: &Applications,
) -> Result<Parsed, String> {
    let mut one = |octets: &[u8]| match of_type {
        OfType::Text => Ok(parts.text(&String::from_utf8_lossy(octets))),
        OfType::Application => Ok(parts.text(&applications.name(octets))),
        _ => scalar(octets, of_type),
    };
    let Some((bytes, is_one_value)) = value.list else {
        return one(value.octets);
    };
    if value.octets.is_empty() && is_one_value {
        return Ok(Parsed::Absent);
    }
    if is_one_value && bytes == usize::from(VARIABLE) {
        let text = whole_text(value.octets).ok_or("a text does not fit its length")?;
        return one(text);
    }
    if bytes == 0 || !value.octets.len().is_multiple_of(bytes) {
        return Err("a list does not fit its length".to_owned());
    }
    let mut each = value.octets.chunks(bytes);
    if is_one_value {
        return each.next().map_or(Ok(Parsed::Absent), one);
    }
    let (start, mut numbers) = (parts.elements.len(), Vec::new());
    for octets in each {
        match scalar(octets, of_type)? {
            Parsed::Unsigned(number) => numbers.push(number),
            _ => return Err("a list has something else than numbers".to_owned()),
        }
    }
    parts.elements.append(&mut numbers);
    Ok(Parsed::List {
        start,
        end: parts.elements.len(),
    })
}

/// The octets of a text of variable length, if it is the only element of its list.
fn whole_text(octets: &[u8]) -> Option<&[u8]> {
    let (length, text) = match octets {
        [u8::MAX, high, low, text @ ..] => (u16::from_be_bytes([*high, *low]).into(), text),
        [length, text @ ..] => (usize::from(*length), text),
        [] => return None,
    };
    (text.len() == length).then_some(text)
}

fn scalar(octets: &[u8], of_type: OfType) -> Result<Parsed, String> {
    if octets.is_empty() {
        return Ok(Parsed::Absent);
    }
    let wrong = || format!("{} octets are not a value of it", octets.len());
    let number = || {
        (octets.len() <= 8)
            .then(|| number(octets))
            .ok_or_else(wrong)
    };
    Ok(match of_type {
        OfType::Address => Parsed::Address(address(octets).ok_or_else(wrong)?),
        OfType::Float => Parsed::Float(match octets.len() {
            8 => f64::from_bits(number()?),
            4 => f32::from_bits(number()? as u32).into(),
            _ => return Err(wrong()),
        }),
        OfType::Mac | OfType::Number => Parsed::Unsigned(number()?),
        OfType::Signed if octets[0] >> 7 == 1 => return Err("it is a negative number".to_owned()),
        OfType::Signed => Parsed::Unsigned(number()?),
        OfType::Time(unit_ns) => {
            let time_ns = number()?.checked_mul(unit_ns);
            Parsed::Unsigned(time_ns.ok_or("a time is later than 2554")?)
        }
        OfType::Ntp(unit_ns) => Parsed::Unsigned(ntp_ns(number()?, unit_ns)),
        OfType::Text | OfType::Application => return Err(wrong()),
    })
}

/// Nanoseconds since 1970 of an NTP time, rounded down because the writer rounds up. An era ends in
/// 2036.
fn ntp_ns(time: u64, unit_ns: u64) -> u64 {
    const NTP_EPOCH_S: u64 = 2_208_988_800;
    const ERA_S: u64 = 1 << 32;
    let (second, fraction) = (time >> 32, time & 0xffff_ffff);
    let second = match second.checked_sub(NTP_EPOCH_S) {
        Some(second) => second,
        None => second + ERA_S - NTP_EPOCH_S,
    };
    let units = (fraction * (1_000_000_000 / unit_ns)) >> 32;
    second * 1_000_000_000 + units * unit_ns
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(octets).ok()?).into()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?).into()),
        _ => None,
    }
}

/// An unsigned number of at most eight octets.
pub(super) fn number(octets: &[u8]) -> u64 {
    octets
        .iter()
        .fold(0, |number, octet| number << 8 | u64::from(*octet))
}

/// Turns the name of an element into a column name: `maxTcpWindow` becomes `max_tcp_window`.
fn words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('_');
        }
        words.extend(letter.to_lowercase());
    }
    words
}
