// SPDX-License-Identifier: Apache-2.0
//! Splits the messages of a file into records and values (RFC 7011, section 3).

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::sync::Arc;

use turboflow_record::BASIC_LIST;

use crate::read::ReadError;

const HEADER_BYTES: usize = 16;
const TEMPLATE_SET: u16 = 2;
const OPTIONS_TEMPLATE_SET: u16 = 3;
const FIRST_DATA_SET: u16 = 256;
/// The length of a field whose values are preceded by their own length.
pub(super) const VARIABLE: u16 = u16::MAX;
const ENTERPRISE_BIT: u16 = 1 << 15;
/// Semantic of a list that stands for the value of a nullable column, and has at most one element.
const ALL_OF: u8 = 3;
/// Limit on the fields of all templates that are known at the same time.
const TEMPLATE_FIELDS_MAX: usize = 1 << 20;

/// An information element: its enterprise number, unless it is one of IANA's, and its id.
pub(super) type ElementId = (Option<u32>, u16);

/// A value of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'a> {
    pub(super) element: ElementId,
    pub(super) octets: &'a [u8],
    /// For a list: the octets of each element, and whether the list stands for a single value.
    pub(super) list: Option<(usize, bool)>,
}

#[derive(Clone, Copy)]
struct Field {
    element: ElementId,
    length: u16,
}

struct Template {
    fields: Vec<Field>,
    is_options: bool,
    /// Octets of the shortest possible record, at least one.
    shortest_bytes: usize,
}

/// The rest of a set of data records.
struct OpenSet {
    template: Arc<Template>,
    at: usize,
    end: usize,
}

/// Reads a file record by record.
pub(super) struct Messages {
    file: BufReader<File>,
    place: String,
    message: Vec<u8>,
    /// Offset of the next set in the message.
    at: usize,
    open: Option<OpenSet>,
    /// Templates, by observation domain and whether they are options templates, then by id.
    templates: HashMap<(u32, bool), HashMap<u16, Arc<Template>>>,
    template_fields: usize,
    read_bytes: u64,
    /// Offset of the last message in the file.
    begins_at: u64,
    is_cut: bool,
}

impl Messages {
    pub(super) fn new(file: File, place: &str) -> Self {
        Self {
            file: BufReader::with_capacity(1 << 18, file),
            place: place.to_owned(),
            message: Vec::new(),
            at: 0,
            open: None,
            templates: HashMap::new(),
            template_fields: 0,
            read_bytes: 0,
            begins_at: 0,
            is_cut: false,
        }
    }

    /// The elements in the templates of flow records so far, except lists, whose elements are only
    /// in the records.
    pub(super) fn templates(&self) -> Vec<ElementId> {
        let templates = self.templates.values().flat_map(HashMap::values);
        let of_flows = templates.filter(|template| !template.is_options);
        let fields = of_flows.flat_map(|template| &template.fields);
        let plain = fields.filter(|field| field.element != (None, BASIC_LIST));
        let mut elements: Vec<ElementId> = plain.map(|field| field.element).collect();
        elements.sort_unstable();
        elements.dedup();
        elements
    }

    /// Calls `take` with the values of each record, and whether it is an options record, until
    /// `take` returns false or the file ends. Returns whether more records may follow.
    pub(super) fn next(
        &mut self,
        take: &mut dyn FnMut(&[Value<'_>], bool) -> bool,
    ) -> Result<bool, ReadError> {
        loop {
            match self.records(take) {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(reason) => return Err(self.error(reason)),
            }
            if self.message.len() < self.at + 4 {
                if !self.read_message()? {
                    return Ok(false);
                }
            } else if let Err(reason) = self.next_set() {
                return Err(self.error(reason));
            }
        }
    }

    /// The error if the file ends within a message, which then was not read.
    pub(super) fn cut(&self) -> Option<ReadError> {
        self.is_cut.then(|| self.error(CUT.to_owned()))
    }

    /// Whether there was not a single complete message.
    pub(super) const fn is_without_message(&self) -> bool {
        self.begins_at == 0 && self.is_cut
    }

    /// An error in the last message.
    pub(super) fn error(&self, reason: String) -> ReadError {
        ReadError::Ipfix {
            place: self.place.clone(),
            offset_bytes: self.begins_at,
            reason,
        }
    }

    /// Reads the header and content of the next message; false at the end of the file, or if the
    /// file ends within a message.
    fn read_message(&mut self) -> Result<bool, ReadError> {
        if self.is_cut {
            return Ok(false);
        }
        self.begins_at = self.read_bytes;
        self.at = HEADER_BYTES;
        self.message.resize(HEADER_BYTES, 0);
        let got = self.fill(0)?;
        let (version, length) = (two(&self.message, 0), usize::from(two(&self.message, 2)));
        let is_message = version == 10 && length >= HEADER_BYTES;
        if got == HEADER_BYTES && !is_message {
            self.message.clear();
            let reason = "no IPFIX message begins here: the file is damaged";
            return Err(self.error(reason.to_owned()));
        }
        if got == HEADER_BYTES {
            self.message.resize(length, 0);
            if self.fill(HEADER_BYTES)? == length - HEADER_BYTES {
                return Ok(true);
            }
        }
        self.is_cut = got > 0;
        self.message.clear();
        Ok(false)
    }

    /// Reads the message from `start` on; returns the number of bytes, which is less at the end of
    /// the file.
    fn fill(&mut self, start: usize) -> Result<usize, ReadError> {
        let mut at = start;
        while at < self.message.len() {
            match self.file.read(&mut self.message[at..]) {
                Ok(0) => break,
                Ok(count) => at += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(unread(&self.place, self.read_bytes, error)),
            }
        }
        self.read_bytes += (at - start) as u64;
        Ok(at - start)
    }

    /// Reads the records of the open set; false if `take` returned false.
    fn records(
        &mut self,
        take: &mut dyn FnMut(&[Value<'_>], bool) -> bool,
    ) -> Result<bool, String> {
        let Some(open) = &mut self.open else {
            return Ok(true);
        };
        let template = &open.template;
        let mut values = Vec::with_capacity(template.fields.len());
        while open.end - open.at >= template.shortest_bytes {
            let mut rest = &self.message[open.at..open.end];
            values.clear();
            for field in &template.fields {
                let value = field.value(&mut rest);
                values.push(value.ok_or("a record does not fit its set")?);
            }
            open.at = open.end - rest.len();
            if !take(&values, template.is_options) {
                return Ok(false);
            }
        }
        self.open = None;
        Ok(true)
    }

    /// Learns the templates of the next set, or opens it if it holds records.
    fn next_set(&mut self) -> Result<(), String> {
        let message = std::mem::take(&mut self.message);
        let outcome = self.set(&message);
        self.message = message;
        outcome
    }

    fn set(&mut self, message: &[u8]) -> Result<(), String> {
        let domain = u32::from_be_bytes([message[12], message[13], message[14], message[15]]);
        let rest = &message[self.at..];
        let (id, length) = (two(rest, 0), usize::from(two(rest, 2)));
        if length < 4 || length > rest.len() {
            return Err(format!("a set of {length} bytes does not fit its message"));
        }
        let start = self.at + 4;
        self.at += length;
        match id {
            TEMPLATE_SET => self.learn(domain, &message[start..self.at], false),
            OPTIONS_TEMPLATE_SET => self.learn(domain, &message[start..self.at], true),
            FIRST_DATA_SET.. => match self.template(domain, id) {
                Some(template) => {
                    self.open = Some(OpenSet {
                        template,
                        at: start,
                        end: self.at,
                    });
                    Ok(())
                }
                None => Err(format!(
                    "records of set {id} come before their template, or after it was withdrawn"
                )),
            },
            _ => Ok(()),
        }
    }

    /// Learns the templates of a set.
    fn learn(&mut self, domain: u32, set: &[u8], is_options: bool) -> Result<(), String> {
        const EARLY: &str = "a template ends too early";
        let mut rest = set;
        // A rest that is shorter than a template is padding.
        while rest.len() >= 4 {
            let (id, count) = (two(rest, 0), two(rest, 2));
            rest = &rest[4..];
            if count == 0 {
                self.withdraw(domain, id, is_options);
                continue;
            }
            if id < FIRST_DATA_SET {
                return Ok(());
            }
            if is_options {
                split(&mut rest, 2).ok_or(EARLY)?;
            }
            let mut fields = Vec::new();
            for _ in 0..count {
                let field = specifier(&mut rest).ok_or(EARLY)?;
                if field.length == 0 {
                    return Err(format!("template {id} has a field of no octets"));
                }
                fields.push(field);
            }
            self.insert(domain, id, Template::new(fields, is_options))?;
        }
        Ok(())
    }

    fn template(&self, domain: u32, id: u16) -> Option<Arc<Template>> {
        let of_kind = |is_options| self.templates.get(&(domain, is_options))?.get(&id);
        of_kind(false).or_else(|| of_kind(true)).cloned()
    }

    fn insert(&mut self, domain: u32, id: u16, template: Template) -> Result<(), String> {
        self.withdraw(domain, id, !template.is_options);
        self.template_fields += template.fields.len();
        let of_kind = self.templates.entry((domain, template.is_options));
        let before = of_kind.or_default().insert(id, Arc::new(template));
        self.template_fields -= before.map_or(0, |before| before.fields.len());
        if self.template_fields > TEMPLATE_FIELDS_MAX {
            return Err(
                "the templates have more than a million fields: no flow records".to_owned(),
            );
        }
        Ok(())
    }

    /// Forgets a template, or all templates of its kind (RFC 7011, section 8.1).
    fn withdraw(&mut self, domain: u32, id: u16, is_options: bool) {
        let kind = (domain, is_options);
        let fields = if matches!(id, TEMPLATE_SET | OPTIONS_TEMPLATE_SET) {
            let all = self.templates.remove(&kind).unwrap_or_default();
            all.values().map(|its| its.fields.len()).sum()
        } else {
            let its = self
                .templates
                .get_mut(&kind)
                .and_then(|its| its.remove(&id));
            its.map_or(0, |its| its.fields.len())
        };
        self.template_fields -= fields;
    }
}

const CUT: &str = "the file ends within a message: its writer did not complete it";

impl Template {
    fn new(fields: Vec<Field>, is_options: bool) -> Self {
        let shortest = |field: &Field| match field.length {
            VARIABLE => 1,
            length => usize::from(length),
        };
        Self {
            shortest_bytes: fields.iter().map(shortest).sum(),
            fields,
            is_options,
        }
    }
}

impl Field {
    fn value<'a>(&self, rest: &mut &'a [u8]) -> Option<Value<'a>> {
        let length = match self.length {
            VARIABLE => match split(rest, 1)?[0] {
                u8::MAX => usize::from(two(split(rest, 2)?, 0)),
                short => usize::from(short),
            },
            length => usize::from(length),
        };
        let octets = split(rest, length)?;
        if self.element != (None, BASIC_LIST) {
            let element = self.element;
            return Some(Value {
                element,
                octets,
                list: None,
            });
        }
        // RFC 6313, section 4.5.1.
        let mut inner = octets;
        let semantic = split(&mut inner, 1)?[0];
        let of = specifier(&mut inner)?;
        Some(Value {
            element: of.element,
            octets: inner,
            list: Some((usize::from(of.length), semantic == ALL_OF)),
        })
    }
}

fn specifier(rest: &mut &[u8]) -> Option<Field> {
    let head = split(rest, 4)?;
    let (id, length) = (two(head, 0), two(head, 2));
    let enterprise = match id & ENTERPRISE_BIT {
        0 => None,
        _ => Some(u32::from_be_bytes(split(rest, 4)?.try_into().ok()?)),
    };
    Some(Field {
        element: (enterprise, id & !ENTERPRISE_BIT),
        length,
    })
}

/// Splits off the first `length` bytes.
fn split<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (first, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(first)
}

fn two(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// An I/O error after that many bytes.
fn unread(place: &str, offset_bytes: u64, source: io::Error) -> ReadError {
    ReadError::Read {
        place: place.to_owned(),
        offset_bytes,
        source,
    }
}
