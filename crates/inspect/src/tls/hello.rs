// SPDX-License-Identifier: Apache-2.0
//! The parts of a TLS client hello that fingerprints need.

use super::bytes::Reader;

/// Maximum bytes of a client hello. Those with post-quantum keys have about 2 KB.
pub const MAX_HELLO_BYTES: usize = 16 * 1024;

/// The content type of handshake records; below, the message type of a client hello.
pub(super) const HANDSHAKE: u8 = 22;
pub(super) const CLIENT_HELLO: u8 = 1;
/// Header sizes in bytes: of a record and, below, of a handshake message.
pub(super) const RECORD_HEADER_BYTES: usize = 5;
const MESSAGE_HEADER_BYTES: usize = 4;

const SERVER_NAME: u16 = 0;
const SUPPORTED_GROUPS: u16 = 10;
const POINT_FORMATS: u16 = 11;
const SIGNATURE_ALGORITHMS: u16 = 13;
const ALPN: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;

/// A parsed client hello (RFC 8446, section 4.1.2). The lists keep the order of the message, and
/// their GREASE values (RFC 8701).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The version field before the random bytes.
    pub legacy_version: u16,
    /// Cipher suites.
    pub ciphers: Vec<u16>,
    /// Types of the extensions.
    pub extensions: Vec<u16>,
    /// Supported groups.
    pub groups: Vec<u16>,
    /// Formats of points on curves.
    pub point_formats: Vec<u8>,
    /// Signature algorithms.
    pub signature_algorithms: Vec<u16>,
    /// Supported versions.
    pub versions: Vec<u16>,
    /// The first protocol of ALPN.
    pub alpn: Option<Vec<u8>>,
    /// The name in the server name extension.
    pub server_name: Option<Vec<u8>>,
}

/// What the bytes at the start of a record are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// A client hello whose end has not arrived yet.
    Incomplete,
    /// A complete client hello.
    Hello(Box<ClientHello>),
    /// Other data, or a client hello that is damaged or too long.
    Other,
}

impl ClientHello {
    /// Parses a client hello at the start of a TLS stream, including its record headers.
    #[must_use]
    pub fn of_stream(stream: &[u8]) -> Option<Self> {
        match Self::seen(stream) {
            Seen::Hello(hello) => Some(*hello),
            Seen::Incomplete | Seen::Other => None,
        }
    }

    pub(super) fn seen(stream: &[u8]) -> Seen {
        if !begins_hello(stream) {
            return Seen::Other;
        }
        let Some(message) = message(stream) else {
            return Seen::Other;
        };
        let Some((header, body)) = message.split_first_chunk::<MESSAGE_HEADER_BYTES>() else {
            return Seen::Incomplete;
        };
        let length = u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
        if length > MAX_HELLO_BYTES {
            return Seen::Other;
        }
        match body.get(..length) {
            None => Seen::Incomplete,
            Some(body) => Self::of_body(body).map_or(Seen::Other, |it| Seen::Hello(Box::new(it))),
        }
    }

    /// Parses the body of the message.
    fn of_body(body: &[u8]) -> Option<Self> {
        let mut body = Reader::new(body);
        let legacy_version = body.u16()?;
        let _random = body.take(32)?;
        let _session = body.short_vector()?;
        let ciphers = body.vector()?.numbers().collect();
        let _compression = body.short_vector()?;
        let mut hello = Self {
            legacy_version,
            ciphers,
            ..Self::default()
        };
        // SSL 3.0 has no extensions.
        if !body.is_empty() {
            let mut extensions = body.vector()?;
            while !extensions.is_empty() {
                let kind = extensions.u16()?;
                hello.extensions.push(kind);
                hello.read_extension(kind, extensions.vector()?);
            }
        }
        Some(hello)
    }

    /// Reads an extension. If it is damaged, only its type is kept in the list of extensions,
    /// because fingerprints include the type.
    fn read_extension(&mut self, kind: u16, mut content: Reader<'_>) {
        match kind {
            SERVER_NAME => self.server_name = server_name(content),
            SUPPORTED_GROUPS => self.groups = list(content),
            SIGNATURE_ALGORITHMS => self.signature_algorithms = list(content),
            POINT_FORMATS => {
                let formats = content
                    .short_vector()
                    .map(|formats| formats.rest().to_vec());
                self.point_formats = formats.unwrap_or_default();
            }
            SUPPORTED_VERSIONS => {
                let versions = content.short_vector();
                self.versions = versions
                    .map(|it| it.numbers().collect())
                    .unwrap_or_default();
            }
            ALPN => {
                let first = content.vector().and_then(|mut all| all.short_vector());
                self.alpn = first.map(|first| first.rest().to_vec());
            }
            _ => {}
        }
    }
}

/// Whether the bytes, as far as they go, are the start of a record with a client hello.
pub(super) fn begins_hello(stream: &[u8]) -> bool {
    stream.first() == Some(&HANDSHAKE)
        && stream.get(1) == Some(&3)
        && stream
            .get(RECORD_HEADER_BYTES)
            .is_none_or(|kind| *kind == CLIENT_HELLO)
}

/// The handshake bytes of the records at the start of a stream. `None` if a record of another type
/// comes before the message ends.
fn message(stream: &[u8]) -> Option<Vec<u8>> {
    let mut records = Reader::new(stream);
    let mut message = Vec::with_capacity(stream.len());
    // Each iteration consumes at least the header of a record.
    while let Some(header) = records.take(RECORD_HEADER_BYTES) {
        if header[0] != HANDSHAKE {
            return is_whole(&message).then_some(message);
        }
        let length = u16::from_be_bytes([header[3], header[4]]);
        match records.take(length.into()) {
            Some(content) => message.extend_from_slice(content),
            None => {
                message.extend_from_slice(records.rest());
                break;
            }
        }
    }
    Some(message)
}

fn is_whole(message: &[u8]) -> bool {
    message
        .first_chunk::<MESSAGE_HEADER_BYTES>()
        .is_some_and(|header| {
            let length = u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
            message.len() - MESSAGE_HEADER_BYTES >= length
        })
}

/// The host name from a list of names, for which RFC 6066, section 3, defines only one type (0).
fn server_name(mut content: Reader<'_>) -> Option<Vec<u8>> {
    let mut names = content.vector()?;
    (names.u8()? == 0).then_some(())?;
    Some(names.vector()?.rest().to_vec())
}

fn list(mut content: Reader<'_>) -> Vec<u16> {
    let numbers = content.vector().map(|list| list.numbers().collect());
    numbers.unwrap_or_default()
}
