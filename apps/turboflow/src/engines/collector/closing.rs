// SPDX-License-Identifier: Apache-2.0
//! What a collector says at its end: what is missing, and what it corrected.

use turboflow_engine::OwnCount;

use crate::engines::Closing;
use crate::keys::Key;
use crate::units::{counted, grouped};

/// Counters of losses whose number of records is unknown. They complete a sentence.
const MISSING: [&str; 8] = [
    "messages_lost",
    "messages_cut",
    "messages_damaged",
    "probes_unknown",
    "microflows_refused",
    "connections_refused",
    "records_implausible",
    "samples_dropped",
];
/// Counters of what was refused or corrected, and is no loss.
const ODD: [&str; 8] = [
    "messages_malformed",
    "flows_refused",
    "handshakes_failed",
    "accepts_failed",
    "templates_refused",
    "times_in_future",
    "times_wrong",
    "clocks_ahead",
];
const PREFIX: &str = "engine_collector_";

/// The counters of a collector that has ended.
#[derive(Clone, Copy)]
pub(super) struct Ended<'a>(pub(super) &'a [OwnCount]);

impl<'a> Ended<'a> {
    fn find(self, name: &str) -> Option<&'a OwnCount> {
        let mut counts = self.0.iter();
        counts.find(|count| count.name.strip_prefix(PREFIX) == Some(name))
    }

    fn count(self, name: &str) -> u64 {
        self.find(name).map_or(0, |found| found.count)
    }

    /// `is_file`: whether messages came from files.
    pub(super) fn closing(self, is_file: bool) -> Closing {
        let found = MISSING.into_iter().filter_map(|name| self.find(name));
        let found = found.filter(|count| count.count > 0);
        let missing = found.map(|count| {
            let (number, about) = (grouped(count.count), count.about);
            format!("{number} {about}: records are missing")
        });
        let lost = [self.probes_lost(), self.unsent(), self.exporters_lost()];
        Closing {
            missing: missing.chain(self.unread()).collect(),
            records_lost: Some(lost.into_iter().flatten().collect()),
            accounted_for: self.accounted_for(is_file),
            has_ip_bytes: true,
            ..Closing::default()
        }
    }

    /// What is accounted for, if not every packet. Other exporters do not say where their records
    /// begin and end, so that losses there cannot be known; and a probe says so only at its end.
    fn accounted_for(self, is_file: bool) -> Option<&'static str> {
        let ended = self.count("probes") > self.count("probes_unended");
        let others = ["probes_unended", "flows", "probe_microflows_earlier"];
        let is_whole = ended && others.into_iter().all(|name| self.count(name) == 0);
        match is_file {
            _ if is_whole => None,
            true => Some("everything that was read"),
            false => Some("everything that arrived"),
        }
    }

    /// Records of probes that are missing in their numbers.
    fn probes_lost(self) -> Option<String> {
        let lost = self.count("probe_microflows_lost");
        let before = self.count("probe_microflows_before").min(lost);
        let unweighed = self.count("probe_microflows_unweighed").min(lost);
        if lost == 0 {
            return None;
        }
        let later = lost - before;
        let early = format!(
            "missing before the first message of a probe that arrived: {}",
            counted(before, "record")
        );
        let how = match (before, later) {
            (0, _) => format!(
                "{} of probes were lost on the way, as sequence numbers show",
                counted(later, "record")
            ),
            (_, 0) => early,
            _ => format!(
                "{early}; {} more were lost on the way, as sequence numbers show",
                grouped(later)
            ),
        };
        let packets = match unweighed {
            0 => "their packets are among those missing above".to_owned(),
            _ if unweighed == lost => "the number of their packets is unknown".to_owned(),
            _ => format!(
                "the number of packets in {} of them is unknown",
                grouped(unweighed)
            ),
        };
        Some(format!(
            "{how}; {packets}. Let the probes send over TCP, or more slowly"
        ))
    }

    fn unsent(self) -> Option<String> {
        let unsent = self.count("probe_microflows_unsent");
        let words = || {
            let records = counted(unsent, "record");
            format!("{records} could not be sent, as the probes report; their logs say why")
        };
        (unsent > 0).then(words)
    }

    /// Records missing where sets arrived without their template.
    fn records_unread(self) -> u64 {
        match self.count("sets_waiting_lost") {
            0 => 0,
            _ => {
                let probes = self.count("probe_microflows_lost");
                let exporters = self.count("records_lost").saturating_sub(probes);
                self.count("records_unread").min(exporters)
            }
        }
    }

    fn exporters_lost(self) -> Option<String> {
        let known = self.count("probe_microflows_lost") + self.records_unread();
        let lost = self.count("records_lost").saturating_sub(known);
        let words = || {
            format!(
                "{}, with an unknown number of packets, were lost on the way to this process: the \
                 sequence numbers of exporters show that they did not arrive",
                counted(lost, "record")
            )
        };
        (lost > 0).then(words)
    }

    /// What arrived, and lacked its template.
    fn unread(self) -> Option<String> {
        let (sets, records) = (self.count("sets_waiting_lost"), self.records_unread());
        let sets_of = counted(sets, "set");
        let what = match records {
            _ if sets == 0 => return None,
            0 => format!(
                "{sets_of} of records arrived, but their template did not, so that an unknown \
                 number of records could not be read"
            ),
            _ => format!(
                "{} could not be read, with an unknown number of packets: {sets_of} of records \
                 arrived, but their template did not",
                counted(records, "record")
            ),
        };
        Some(format!(
            "{what}; let the exporter send its templates more often, or IPFIX over TCP"
        ))
    }

    /// What was corrected or not taken, without a loss. `lag` and `scale` are options of the
    /// engine.
    pub(super) fn shortcomings(self, lag: &Key, scale: &Key) -> Vec<String> {
        let mut words = Vec::new();
        let sampled = self.count("records_sampled");
        if sampled > self.count("records_scaled") {
            words.push(format!(
                "{} of sampled traffic: their packets and bytes count only the sample; {scale} \
                 multiplies them",
                counted(sampled, "record")
            ));
        }
        let late = self.count("records_late");
        if late > 0 {
            words.push(format!(
                "{} arrived later than {lag} allows: they are in flow records of their own; raise \
                 it above the active timeout of the exporters, and for stored records above their \
                 age",
                counted(late, "record")
            ));
        }
        let across = self.count("records_across_windows");
        if across > 0 {
            words.push(format!(
                "{} had packets of two windows, and cannot be divided: let the exporters cut their \
                 flows at the same windows, too ({})",
                counted(across, "record"),
                Key::Align
            ));
        }
        let earlier = self.count("probe_microflows_earlier");
        if earlier > 0 {
            words.push(format!(
                "{} of probes were sent before this run listened, and are not in its flow records",
                counted(earlier, "record")
            ));
        }
        let running = self.count("probes_unended");
        let running = running.saturating_sub(self.count("probes_unheard"));
        if running > 0 {
            words.push(format!(
                "{} had not ended when this run did: this run has what had arrived by then",
                counted(running, "probe")
            ));
        }
        // Damaged messages are losses, which the end of the run states.
        let damaged = self.count("messages_damaged");
        let odd = |name: &str| match name {
            "messages_malformed" => self.count(name) - damaged,
            _ => self.count(name),
        };
        let odd: Vec<String> = ODD
            .into_iter()
            .filter(|name| odd(name) > 0)
            .map(|name| format!("{PREFIX}{name} {}", odd(name)))
            .collect();
        if !odd.is_empty() {
            words.push(format!(
                "some of what exporters sent was refused or corrected: {}",
                odd.join(", ")
            ));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counts: &[(&'static str, u64)]) -> Closing {
        let counts = counts.iter().map(|&(name, count)| OwnCount {
            name,
            about: "messages",
            is_gauge: false,
            count,
        });
        Ended(&counts.collect::<Vec<_>>()).closing(false)
    }

    #[test]
    fn a_loss_is_told_once_and_with_what_is_known() {
        let closing = of(&[
            ("engine_collector_records_lost", 10),
            ("engine_collector_probe_microflows_lost", 10),
            ("engine_collector_probe_microflows_before", 4),
        ]);
        let lost = closing.records_lost.unwrap();
        let [words] = &lost[..] else {
            panic!("{lost:?}")
        };
        assert!(
            words
                .starts_with("missing before the first message of a probe that arrived: 4 records")
        );
        assert!(words.contains("; 6 more were lost on the way, as sequence numbers show"));
        assert!(
            words.contains("; their packets are among those missing above. Let the probes send")
        );
        assert!(!words.contains("unknown"));
        let closing = of(&[
            ("engine_collector_records_lost", 7),
            ("engine_collector_records_unread", 7),
            ("engine_collector_sets_waiting_lost", 3),
        ]);
        assert_eq!(closing.records_lost, Some(Vec::new()));
        let [words] = &closing.missing[..] else {
            panic!("{:?}", closing.missing)
        };
        assert!(words.starts_with("7 records could not be read"), "{words}");
        assert!(words.contains("3 sets of records arrived, but their template did not"));
    }

    #[test]
    fn only_probes_that_have_ended_tell_everything() {
        let ended = ("engine_collector_probes", 2);
        assert_eq!(of(&[ended]).accounted_for, None);
        for more in ["engine_collector_probes_unended", "engine_collector_flows"] {
            let closing = of(&[ended, (more, 1)]);
            assert_eq!(closing.accounted_for, Some("everything that arrived"));
        }
        assert_eq!(of(&[]).accounted_for, Some("everything that arrived"));
    }
}
