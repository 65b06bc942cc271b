// SPDX-License-Identifier: Apache-2.0
//! What the log says about refused connections and messages: a bounded number of lines.

use std::fmt::Display;
use std::net::SocketAddr;

use crate::log::say;
use crate::units::counted;

/// Maximum log lines per minute about refused connections and messages. All of them are counted.
const LINES_A_MINUTE: usize = 20;
const MINUTE_NS: u64 = 60_000_000_000;

/// Counters of refused connections and messages, and the limit on log lines about them.
#[derive(Default)]
pub(super) struct Complaints {
    minute: u64,
    /// What was said in this minute.
    said: Vec<Said>,
    pub(super) connections_refused: u64,
    pub(super) handshakes_failed: u64,
    pub(super) accepts_failed: u64,
    pub(super) messages_cut: u64,
}

struct Said {
    /// The host of a connection, or the address and port of a datagram.
    sender: String,
    what: String,
    /// How often it happened again.
    again: u64,
}

/// A line of the log, and the exporter that it is about.
type Line = (String, String);

impl Complaints {
    /// Logs that a connection was refused or ended, unless this minute has enough such lines, or
    /// had this one about the same host: each connection has another port.
    pub(super) fn say(&mut self, now_ns: u64, address: Option<SocketAddr>, what: impl Display) {
        let sender = address.map(|address| address.ip().to_canonical().to_string());
        self.pass(now_ns);
        log(self.note(sender, address, what.to_string()));
    }

    /// Logs that a datagram was refused, under the same conditions for its address and port.
    pub(super) fn say_of_datagram(&mut self, now_ns: u64, from: SocketAddr, what: impl Display) {
        self.pass(now_ns);
        log(self.note(Some(from.to_string()), Some(from), what.to_string()));
    }

    /// Once a minute is over, logs how often its complaints were repeated.
    pub(super) fn pass(&mut self, now_ns: u64) {
        log(self.repeated(now_ns));
    }

    fn note(
        &mut self,
        sender: Option<String>,
        address: Option<SocketAddr>,
        what: String,
    ) -> Option<Line> {
        let unknown = || "exporter".to_owned();
        let exporter = address.map_or_else(unknown, |its| its.to_string());
        let sender = sender.unwrap_or_else(unknown);
        let is_same = |said: &&mut Said| said.sender == sender && is_alike(&said.what, &what);
        if let Some(said) = self.said.iter_mut().find(is_same) {
            said.again += 1;
            return None;
        }
        if self.said.len() == LINES_A_MINUTE {
            return None;
        }
        let mut line = format!("{exporter} {what}");
        self.said.push(Said {
            sender,
            what,
            again: 0,
        });
        if self.said.len() == LINES_A_MINUTE {
            line += "; further messages of this minute are only counted";
        }
        Some((exporter, line))
    }

    fn repeated(&mut self, now_ns: u64) -> Vec<Line> {
        let minute = now_ns / MINUTE_NS;
        if minute == self.minute {
            return Vec::new();
        }
        self.minute = minute;
        let said = self.said.drain(..).filter(|said| said.again > 0);
        let lines = said.map(|said| {
            let Said {
                sender,
                what,
                again,
            } = said;
            let times = counted(again, "more time");
            let line = format!("{sender} {what} ({times} within that minute)");
            (sender, line)
        });
        lines.collect()
    }
}

/// Whether two complaints differ at most in their numbers.
fn is_alike(one: &str, other: &str) -> bool {
    let words = |text: &str| -> String {
        let letters = text.chars().filter(|letter| !letter.is_ascii_digit());
        letters.collect()
    };
    words(one) == words(other)
}

fn log(lines: impl IntoIterator<Item = Line>) {
    for (exporter, line) in lines {
        say!(Warning ExporterRefused, exporter = exporter.as_str(); "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_said_once_a_minute_with_a_count_later() {
        let mut complaints = Complaints::default();
        let address = |port| Some(SocketAddr::from(([192, 0, 2, 1], port)));
        let sender = |port| address(port).map(|its: SocketAddr| its.to_string());
        let mut note =
            |port, what: &str| complaints.note(sender(port), address(port), what.to_owned());
        let first = note(1, "is 61 s ahead").unwrap();
        assert_eq!(first.1, "192.0.2.1:1 is 61 s ahead");
        assert_eq!(note(1, "is 62 s ahead"), None);
        assert_eq!(note(1, "is 61 s ahead"), None);
        assert!(note(1, "sent something else").is_some());
        assert!(note(2, "is 61 s ahead").is_some());
        assert_eq!(complaints.repeated(MINUTE_NS - 1), []);
        let again = complaints.repeated(MINUTE_NS);
        let words = "192.0.2.1:1 is 61 s ahead (2 more times within that minute)";
        assert_eq!(again, [("192.0.2.1:1".to_owned(), words.to_owned())]);
        let mut note = |port| complaints.note(sender(port), address(port), "is wrong".to_owned());
        let lines: Vec<Line> = (0..100).filter_map(&mut note).collect();
        assert_eq!(lines.len(), LINES_A_MINUTE);
        let (_, last) = &lines[LINES_A_MINUTE - 1];
        assert!(last.ends_with("of this minute are only counted"), "{last}");
        assert_eq!(complaints.repeated(2 * MINUTE_NS), []);
        // A host that connects again and again.
        let host = Some("192.0.2.1".to_owned());
        let mut note = |port| complaints.note(host.clone(), address(port), "was cut".to_owned());
        assert_eq!(note(7).unwrap().1, "192.0.2.1:7 was cut");
        assert_eq!(note(8), None);
        let again = complaints.repeated(3 * MINUTE_NS);
        assert_eq!(
            again[0].1,
            "192.0.2.1 was cut (1 more time within that minute)"
        );
    }
}
