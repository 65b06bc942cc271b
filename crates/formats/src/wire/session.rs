// SPDX-License-Identifier: Apache-2.0
//! A transport session: turns units into messages. A message gets its export time when it is made,
//! and its sequence number when it is sent.

use turboflow_record::Element;

use super::applications::is_application;
use super::body::Body;
use super::netflow9::Times;
use super::options::{self, FileDefinition, SetRecord};
use super::{DataRecords, Protocol, Unit, WireOptions, ipfix, netflow5, netflow9};

/// Intervals at which templates and options are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// Interval in milliseconds; `None`: never.
    pub interval_ms: Option<u64>,
    /// Interval in messages; `None`: never.
    pub messages: Option<u64>,
    /// Whether templates are repeated. Over TCP, which is reliable, they are sent once per
    /// connection (RFC 7011, section 8.3).
    pub templates: bool,
}

impl Refresh {
    /// Over UDP: every 30 s, and every 4,096 messages. Collectors keep templates for at least three
    /// times the interval (RFC 7011, section 8.4).
    pub const DATAGRAMS: Self = Self {
        interval_ms: Some(30_000),
        messages: Some(4_096),
        templates: true,
    };

    /// Over TCP: statistics every 30 s.
    pub const STREAM: Self = Self {
        interval_ms: Some(30_000),
        messages: None,
        templates: false,
    };

    /// In files: everything at the start, and statistics at the end.
    pub const FILE: Self = Self {
        interval_ms: None,
        messages: None,
        templates: false,
    };
}

/// Totals of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounters {
    /// Messages sent.
    pub messages: u64,
    /// Octets of these messages.
    pub bytes: u64,
    /// Flow records in these messages.
    pub flows: u64,
    /// Flow records that could not be sent.
    pub flows_not_sent: u64,
    /// Packets of the flow records that could not be sent.
    pub packets_not_sent: u64,
    /// Octets of the flow records that could not be sent.
    pub octets_not_sent: u64,
}

/// A message, to be sent as one datagram or in one piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The message, including its header.
    pub bytes: Vec<u8>,
    /// Flow records that end in the message.
    pub flows: u64,
    /// Packets of these flow records.
    pub packets: u64,
    /// Octets of these flow records.
    pub octets: u64,
    /// How much sending the message increments the sequence number: by the number of data records
    /// in IPFIX and NetFlow v5, by one in NetFlow v9.
    sequence_steps: u32,
}

/// The state of a transport session: what was sent, and when it has to be repeated.
pub struct Session {
    protocol: Protocol,
    domain: u32,
    message_bytes: usize,
    has_options: bool,
    refresh: Refresh,
    /// All template records that have been emitted so far.
    templates: Vec<Vec<u8>>,
    /// Enterprise elements that need type information.
    elements: Vec<Element>,
    /// Whether records contain applications; `names` holds the options records received so far.
    has_applications: bool,
    names: Vec<Vec<u8>>,
    /// In files: the definition of the records.
    definition: Option<FileDefinition>,
    /// Sequence number, modulo 2^32: data records sent in this session in IPFIX and NetFlow v5,
    /// messages in NetFlow v9.
    sequence: u32,
    /// When options were last sent, in milliseconds since 1970; `None` before the session starts.
    announced_ms: Option<u64>,
    messages_since: u64,
    /// The times of the last data sent; NetFlow v9 puts them in every header.
    times: Times,
    counters: SessionCounters,
}

impl Session {
    /// A session that has not started.
    #[must_use]
    pub fn new(protocol: Protocol, options: &WireOptions, refresh: Refresh) -> Self {
        let columns = options.elements.iter();
        let elements = columns.flat_map(|column| [&column.v4, &column.v6]);
        let mut own: Vec<Element> = elements
            .filter(|element| options::is_our_own(element))
            .cloned()
            .collect();
        own.sort_by_key(|element| element.id);
        own.dedup_by_key(|element| element.id);
        Self {
            protocol,
            domain: options.domain,
            message_bytes: options.message_bytes,
            has_options: options.has_options,
            refresh,
            templates: Vec::new(),
            elements: own,
            has_applications: options.elements.iter().any(is_application),
            names: Vec::new(),
            definition: None,
            sequence: 0,
            announced_ms: None,
            messages_since: 0,
            times: Times::default(),
            counters: SessionCounters::default(),
        }
    }

    /// Adds the record definition to the options from now on.
    pub(crate) fn define(&mut self, definition: FileDefinition) {
        self.definition = Some(definition);
    }

    /// Totals, including those of earlier connections.
    #[must_use]
    pub const fn counters(&self) -> &SessionCounters {
        &self.counters
    }

    /// Starts a new session on a new connection: sequence numbers restart at 0, and templates come
    /// first.
    pub fn restart(&mut self) {
        self.sequence = 0;
        self.announce_anew();
    }

    /// Makes the next message start with all templates again, without resetting sequence numbers:
    /// the collector may have restarted or been replaced.
    pub fn announce_anew(&mut self) {
        self.announced_ms = None;
        self.messages_since = 0;
    }

    /// Fills in the sequence number of a message, just before it is sent. Messages that are never
    /// sent have no number and so leave no gap.
    pub fn number(&self, message: &mut Message) {
        let at = self.protocol.sequence_at();
        message.bytes[at..at + 4].copy_from_slice(&self.sequence.to_be_bytes());
    }

    /// Advances the sequence number by a message that was sent, and counts the message.
    pub fn count_sent(&mut self, message: &Message) {
        self.sequence = self.sequence.wrapping_add(message.sequence_steps);
        self.counters.messages += 1;
        self.counters.bytes += message.bytes.len() as u64;
        self.counters.flows += message.flows;
    }

    /// Counts as lost flow records that were counted as sent.
    pub fn recount_lost(&mut self, flows: u64, packets: u64, octets: u64) {
        self.counters.flows -= flows.min(self.counters.flows);
        self.count_lost(flows, packets, octets);
    }

    /// Counts flow records that could not be sent.
    pub fn count_lost(&mut self, flows: u64, packets: u64, octets: u64) {
        self.counters.flows_not_sent += flows;
        self.counters.packets_not_sent = self.counters.packets_not_sent.wrapping_add(packets);
        self.counters.octets_not_sent = self.counters.octets_not_sent.wrapping_add(octets);
    }

    /// When [`Session::tick`] has something to send, in milliseconds since 1970; `None` if never.
    #[must_use]
    pub fn due_ms(&self) -> Option<u64> {
        match self.announced_ms {
            None => Some(0),
            Some(announced) => self
                .refresh
                .interval_ms
                .map(|interval| announced.saturating_add(interval)),
        }
    }

    /// Sends the templates and options that are due, even if there is no data.
    pub fn tick(&mut self, now_ms: u64, send: &mut dyn FnMut(Message)) {
        let begins = self.announced_ms.is_none();
        // A clock that was set back must not delay templates.
        let early = self
            .announced_ms
            .is_some_and(|announced| announced > now_ms);
        let many = self
            .refresh
            .messages
            .is_some_and(|limit| self.messages_since >= limit);
        if begins || early || many || self.due_ms().is_some_and(|due| due <= now_ms) {
            self.announce(begins || self.refresh.templates, now_ms, send);
        }
    }

    /// Sends the templates and options that are due, then a unit.
    pub fn unit(&mut self, unit: &Unit, now_ms: u64, send: &mut dyn FnMut(Message)) {
        match unit {
            Unit::Template(record) => {
                let begun = self.announced_ms.is_some();
                self.templates.push(record.clone());
                if begun {
                    let record = self.template_record(self.templates.len() - 1);
                    self.pack(vec![record], now_ms, send);
                }
            }
            Unit::Name(record) => {
                self.names.push(record.clone());
                if self.announced_ms.is_some() && self.has_options {
                    self.pack(vec![name_record(record)], now_ms, send);
                }
            }
            Unit::Complete(_) => {}
            Unit::Data(data) => {
                self.times.boot_ms = data.boot_ms;
                self.times.latest_ms = self.times.latest_ms.max(data.latest_ms);
                if data.latest_ms < data.boot_ms || self.times.latest_ms - data.boot_ms > 1 << 31 {
                    self.times.latest_ms = data.latest_ms;
                }
                self.tick(now_ms, send);
                let message = self.message(data, data.records as u16, now_ms);
                send(message);
            }
        }
    }

    /// Sends the last statistics.
    pub fn finish(&mut self, now_ms: u64, send: &mut dyn FnMut(Message)) {
        if self.announced_ms.is_none() {
            self.announce(true, now_ms, send);
        } else if self.has_options {
            let statistics = options::statistics(self.protocol, self.domain, &self.counters);
            self.pack(statistics, now_ms, send);
        }
    }

    fn announce(&mut self, with_templates: bool, now_ms: u64, send: &mut dyn FnMut(Message)) {
        let mut records = Vec::new();
        if with_templates {
            records.extend((0..self.templates.len()).map(|index| self.template_record(index)));
        }
        if with_templates && self.has_options {
            let has_own = !self.elements.is_empty() || self.definition.is_some();
            let has_applications = self.has_applications;
            records.extend(options::templates(self.protocol, has_own, has_applications));
            let described = options::descriptions(self.protocol, self.domain, &self.elements);
            records.extend(described);
            let defined = self.definition.iter();
            records.extend(defined.flat_map(|its| its.records(self.domain)));
            records.extend(self.names.iter().map(|record| name_record(record)));
        }
        if self.has_options {
            let statistics = options::statistics(self.protocol, self.domain, &self.counters);
            records.extend(statistics);
        }
        self.pack(records, now_ms, send);
        self.announced_ms = Some(now_ms);
        self.messages_since = 0;
    }

    fn template_record(&self, index: usize) -> SetRecord {
        let set = match self.protocol {
            Protocol::Ipfix => ipfix::TEMPLATE_SET,
            _ => netflow9::TEMPLATE_SET,
        };
        SetRecord {
            set,
            bytes: self.templates[index].clone(),
            is_data: false,
        }
    }

    /// Packs records into as few messages as possible.
    fn pack(&mut self, records: Vec<SetRecord>, now_ms: u64, send: &mut dyn FnMut(Message)) {
        let room = self.message_bytes - self.protocol.header_bytes();
        let align = if self.protocol == Protocol::Netflow9 {
            4
        } else {
            1
        };
        let mut body = Body::new(room, align);
        let mut count = 0;
        for record in &records {
            if options::is_template_set(record.set) {
                body.close_set();
            }
            let mark = body.open(record.set);
            body.bytes().extend_from_slice(&record.bytes);
            if !body.fits() && count > 0 {
                body.roll_back(mark);
                let data = body.take();
                send(self.message(&data, count, now_ms));
                count = 0;
                body.open(record.set);
                body.bytes().extend_from_slice(&record.bytes);
            }
            count += 1;
            body.tally().records += u32::from(record.is_data);
        }
        if count > 0 {
            let data = body.take();
            send(self.message(&data, count, now_ms));
        }
    }

    /// A message with this body and `count` records of any kind, without its sequence number.
    fn message(&mut self, data: &DataRecords, count: u16, now_ms: u64) -> Message {
        let mut bytes = Vec::with_capacity(self.protocol.header_bytes() + data.bytes.len());
        let sequence_steps = match self.protocol {
            Protocol::Ipfix => {
                let header = ipfix::header(data.bytes.len(), now_ms, self.domain);
                bytes.extend_from_slice(&header);
                data.records
            }
            Protocol::Netflow9 => {
                let times = Times {
                    now_ms,
                    ..self.times
                };
                bytes.extend_from_slice(&netflow9::header(count, times, self.domain));
                1
            }
            Protocol::Netflow5 => {
                bytes.extend_from_slice(&netflow5::header(data, self.domain, now_ms));
                data.records
            }
        };
        bytes.extend_from_slice(&data.bytes);
        self.messages_since += 1;
        Message {
            bytes,
            flows: u64::from(data.flows),
            packets: data.packets,
            octets: data.octets,
            sequence_steps,
        }
    }
}

/// An options record that names an application.
fn name_record(bytes: &[u8]) -> SetRecord {
    SetRecord {
        set: options::APPLICATIONS,
        bytes: bytes.to_vec(),
        is_data: true,
    }
}
