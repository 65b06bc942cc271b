// SPDX-License-Identifier: Apache-2.0
//! The trait of inspectors, and what they find in packets.

use turboflow_record::ApplicationNames;

/// How far the inspection of a flow has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// The application is not known yet.
    #[default]
    Undecided,
    /// The application is known, but further packets may reveal names.
    Known,
    /// There is nothing more to learn.
    Complete,
}

/// One packet of a flow, from its IP header on.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// The IP packet without link-layer padding; the capture may have truncated it.
    pub datagram: &'a [u8],
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    /// Whether it goes from the greater end of the flow's key to the smaller one.
    pub is_reversed: bool,
}

/// The texts that an inspection can find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// Server name of TLS or QUIC.
    ServerName,
    /// JA3 fingerprint of a TLS client: 32 hexadecimal digits.
    Ja3,
    /// JA4 fingerprint of a TLS client.
    Ja4,
    /// Name that a DNS query asks for.
    DnsQueryName,
    /// Host of an HTTP request.
    HttpHost,
}

impl Text {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::ServerName,
        Self::Ja3,
        Self::Ja4,
        Self::DnsQueryName,
        Self::HttpHost,
    ];
}

/// The most bytes of a text.
pub const MAX_TEXT_BYTES: usize = 255;

/// What is known about a flow. Reused for the next packet, so that nothing is allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The library's numbers: `master << 16 | application`, 0 if unknown.
    pub application: u32,
    /// The library's number of the category.
    pub category: u8,
    /// How the application was recognised.
    pub confidence: Confidence,
    /// The library's set of risks.
    pub risk: u64,
    pub(crate) texts: [Vec<u8>; Text::ALL.len()],
}

impl Facts {
    /// A text, empty if it is not known. The sender chose its bytes, which may be anything.
    #[must_use]
    pub fn text(&self, text: Text) -> &[u8] {
        &self.texts[text as usize]
    }

    /// Sets a text, truncated to [`MAX_TEXT_BYTES`].
    pub fn set_text(&mut self, text: Text, bytes: &[u8]) {
        let kept = &mut self.texts[text as usize];
        kept.clear();
        kept.extend_from_slice(&bytes[..bytes.len().min(MAX_TEXT_BYTES)]);
    }

    /// Clears all facts.
    pub fn clear(&mut self) {
        self.application = 0;
        self.category = 0;
        self.confidence = Confidence::Unknown;
        self.risk = 0;
        self.texts.iter_mut().for_each(Vec::clear);
    }
}

/// How an application was recognised, in order of increasing confidence. The numbers are written to
/// records, and do not depend on the version of the library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Confidence {
    /// Not at all.
    #[default]
    Unknown = 0,
    /// Guessed from a port.
    Port = 1,
    /// Guessed from an address.
    Address = 2,
    /// From a part of the payload, and from other flows of the hosts.
    PartialCache = 3,
    /// From a part of the payload.
    Partial = 4,
    /// From other flows of the hosts.
    Cache = 5,
    /// From the payload.
    Payload = 6,
    /// By a rule that the user of the library defined.
    Rule = 7,
}

impl Confidence {
    /// All confidences, ordered by number.
    pub const ALL: [Self; 8] = [
        Self::Unknown,
        Self::Port,
        Self::Address,
        Self::PartialCache,
        Self::Partial,
        Self::Cache,
        Self::Payload,
        Self::Rule,
    ];

    /// The confidence with that number, if there is one.
    #[must_use]
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// Recognises the application of a flow from its packets.
///
/// Packets of one flow arrive in the order of the capture; packets of different flows are
/// interleaved.
pub trait Inspector {
    /// The state of a flow under inspection.
    type Flow;

    /// Begins a flow; `None` if there is no memory.
    fn open(&mut self) -> Option<Self::Flow>;

    /// Inspects the next packet of a flow, and replaces `facts` with what is then known.
    fn inspect(&mut self, flow: &mut Self::Flow, sight: &Sight<'_>, facts: &mut Facts) -> Progress;

    /// Replaces `facts` with the best guess, as if no packet followed. The inspection can continue.
    fn guess(&mut self, flow: &Self::Flow, facts: &mut Facts);

    /// Ends a flow, and replaces `facts` with the final result about it.
    fn give_up(&mut self, flow: Self::Flow, facts: &mut Facts);

    /// The names that belong to the inspector's numbers.
    fn names(&self) -> ApplicationNames;

    /// Bytes of the heap in use; 0 if unknown.
    fn heap_bytes(&self) -> u64;
}
