// SPDX-License-Identifier: Apache-2.0
//! What a bridge says when it ends: where every packet went, and what each rule did.

use turboflow_engine::OwnCount;
use turboflow_formats::table::{Align, Table, bytes};

use super::control::Control;
use crate::engines::Closing;
use crate::units::{counted, grouped};

/// The engine's counter of packets that a verdict dropped.
const DROPPED: &str = "offload_packets_dropped";

/// The closing words. What no verdict drops is handed to the Linux bridge below the program, which
/// forwards it and counts its own losses (`ip -s -s link show`).
pub(super) fn closing(control: &Control, counts: &[OwnCount], received: u64) -> Closing {
    let found = counts.iter().find(|own| own.name == DROPPED);
    let dropped = found.map_or(0, |own| own.count);
    let mut table = Table::new([("packets", Align::Left), ("", Align::Right)]);
    table.push(vec!["received".to_owned(), grouped(received)]);
    table.push(vec!["  dropped by rule".to_owned(), grouped(dropped)]);
    let handed = received.checked_sub(dropped);
    table.push(vec![
        "  handed to the Linux bridge".to_owned(),
        grouped(handed.unwrap_or(0)),
    ]);
    let mut losses = Vec::new();
    if handed.is_none() {
        losses.push(format!(
            "{} received, and {} dropped by rules: a bug in turboflow",
            counted(received, "packet"),
            grouped(dropped)
        ));
    }
    Closing {
        summary: format!("{}\n{}", table.render(None), by_rule(control)),
        losses,
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

    #[test]
    fn packets_are_dropped_or_handed_on() {
        let control = Control::default();
        let own = |count| OwnCount {
            name: DROPPED,
            about: "",
            is_gauge: false,
            count,
        };
        let well = closing(&control, &[own(34)], 1_234);
        assert_eq!(well.losses, [""; 0]);
        for words in ["received", "1,234", "dropped by rule", "34", "1,200"] {
            assert!(well.summary.contains(words), "{}", well.summary);
        }
        let ill = closing(&control, &[own(12)], 11);
        assert!(ill.losses[0].contains("11 packets received"), "{ill:?}");
    }
}
