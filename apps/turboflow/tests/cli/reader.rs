// SPDX-License-Identifier: Apache-2.0
//! A simple IPFIX decoder, for the messages that a collector receives.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::TcpStream;

/// Decodes one stream of messages and checks its sequence numbers.
#[derive(Default)]
pub(crate) struct Reader {
    /// Octets of a record, by template id.
    templates: BTreeMap<usize, usize>,
    pub(crate) messages: u64,
    pub(crate) flows: u64,
    /// Id of the first set in the stream.
    pub(crate) first_set: usize,
    /// The expected sequence number of the next message.
    sequence: usize,
}

impl Reader {
    #[track_caller]
    pub(crate) fn message(&mut self, message: &[u8]) {
        let two = |at: usize| usize::from(u16::from_be_bytes([message[at], message[at + 1]]));
        let sequence = two(8) << 16 | two(10);
        if self.messages == 0 {
            (self.first_set, self.sequence) = (two(16), sequence);
        }
        assert_eq!(sequence, self.sequence, "message {}", self.messages);
        self.messages += 1;
        let mut at = 16;
        while at < message.len() {
            let (set, end) = (two(at), at + two(at + 2));
            match set {
                2 | 3 => self.templates_in(&message[at + 4..end], set == 3),
                _ => {
                    let records = (end - at - 4) / self.templates[&set];
                    self.sequence += records;
                    self.flows += if set < 261 { 0 } else { records as u64 };
                }
            }
            at = end;
        }
    }

    /// Reads templates that have only IANA's fields of fixed length, as those of the default
    /// definition.
    fn templates_in(&mut self, set: &[u8], of_options: bool) {
        let two = |at: usize| usize::from(u16::from_be_bytes([set[at], set[at + 1]]));
        let mut at = 0;
        while at < set.len() {
            let (id, fields) = (two(at), two(at + 2));
            at += if of_options { 6 } else { 4 };
            let lengths = (0..fields).map(|field| two(at + 4 * field + 2));
            self.templates.insert(id, lengths.sum());
            at += 4 * fields;
        }
    }

    /// Reads `most` messages from a connection, or all until its end.
    pub(crate) fn read(&mut self, stream: &mut TcpStream, most: u64) {
        while self.messages < most {
            let mut message = vec![0; 16];
            if stream.read_exact(&mut message).is_err() {
                return;
            }
            message.resize(usize::from(u16::from_be_bytes([message[2], message[3]])), 0);
            stream.read_exact(&mut message[16..]).unwrap();
            self.message(&message);
        }
    }
}
