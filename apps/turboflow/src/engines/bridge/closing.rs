// SPDX-License-Identifier: Apache-2.0
//! The closing report of a bridge: where every packet went, and what each rule did.

use turboflow_engine::OwnCount;
use turboflow_formats::table::{Align, Table, bytes};

use super::control::Control;
use crate::engines::Closing;
use crate::units::{counted, grouped};

/// The possible ends of a frame: the engine's counter, and its name in the report.
const WENT: [(&str, &str); 7] = [
    ("bridge_forwarded", "forwarded"),
    ("bridge_dropped_by_verdict", "dropped by rules"),
    ("bridge_dropped_undecided", "dropped while undecided"),
    ("bridge_dropped_other", "dropped as other"),
    ("bridge_too_long", "too long for the other port"),
    ("bridge_redirect_errors", "not redirected"),
    ("bridge_driver_dropped", "dropped by the driver"),
];
/// The counters of frames that should have been forwarded, but were lost.
const LOST: [&str; 3] = [
    "bridge_too_long",
    "bridge_redirect_errors",
    "bridge_driver_dropped",
];

/// The closing report. Every received frame is counted in exactly one line.
pub(super) fn closing(control: &Control, counts: &[OwnCount], received: u64) -> Closing {
    let count_of = |name: &str| {
        let found = counts.iter().find(|own| own.name == name);
        found.map_or(0, |own| own.count)
    };
    let mut table = Table::new([("frames", Align::Left), ("", Align::Right)]);
    table.push(vec!["received".to_owned(), grouped(received)]);
    let would_drop = count_of("bridge_would_drop");
    if would_drop > 0 {
        let words = "would have been dropped, in this dry run".to_owned();
        table.push(vec![words, grouped(would_drop)]);
    }
    for (name, words) in WENT {
        table.push(vec![words.to_owned(), grouped(count_of(name))]);
    }
    let mut losses = Vec::new();
    let lost: u64 = LOST.iter().map(|name| count_of(name)).sum();
    if lost > 0 {
        losses.push(format!(
            "{} lost on the way to the other port: too long for that port {}, not redirected {}, \
             dropped by its driver {}",
            counted(lost, "frame"),
            grouped(count_of(LOST[0])),
            grouped(count_of(LOST[1])),
            grouped(count_of(LOST[2]))
        ));
    }
    let went: u64 = WENT.iter().map(|(name, _)| count_of(name)).sum();
    if went != received {
        losses.push(format!(
            "{} received, and {} accounted for: a bug in turboflow",
            counted(received, "frame"),
            grouped(went)
        ));
    }
    Closing {
        summary: format!(
            "{}\n{}\n{}\n",
            table.render(None),
            by_rule(control),
            control.afterwards()
        ),
        losses,
        ..Closing::default()
    }
}

fn by_rule(control: &Control) -> String {
    let mut table = Table::new([
        ("rule", Align::Left),
        ("action", Align::Left),
        ("flows", Align::Right),
        ("packets", Align::Right),
        ("bytes", Align::Right),
    ]);
    for rule in control.by_rule() {
        let of = |text: &dyn Fn((u64, u64)) -> String| rule.packets.map_or("-".to_owned(), text);
        let (packets, octets) = (of(&|it| grouped(it.0)), of(&|it| bytes(it.1)));
        table.push(vec![
            rule.rule,
            rule.action.to_owned(),
            grouped(rule.flows),
            packets,
            octets,
        ]);
    }
    table.render(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(counts: &[(&'static str, u64)], received: u64) -> Closing {
        let own = |&(name, count): &(&'static str, u64)| OwnCount {
            name,
            about: "",
            is_gauge: false,
            count,
        };
        let counts: Vec<_> = counts.iter().map(own).collect();
        closing(&Control::default(), &counts, received)
    }

    #[test]
    fn every_frame_is_in_a_line() {
        let counts = [
            ("bridge_forwarded", 1_200),
            ("bridge_dropped_by_verdict", 34),
        ];
        let well = closed(&counts, 1_234);
        assert_eq!(well.losses, [""; 0]);
        for words in ["received", "1,234", "dropped by rules", "34", "1,200"] {
            assert!(well.summary.contains(words), "{}", well.summary);
        }
        let ill = closed(&counts, 1_235);
        assert!(ill.losses[0].contains("1,235 frames received"), "{ill:?}");
    }

    #[test]
    fn frames_that_did_not_arrive_are_a_loss() {
        let counts = [("bridge_forwarded", 7), ("bridge_too_long", 3)];
        let said = closed(&counts, 10).losses;
        assert!(said[0].contains("3 frames lost"), "{said:?}");
        assert!(said[0].contains("too long for that port 3"), "{said:?}");
        assert_eq!(said.len(), 1);
    }
}
