// SPDX-License-Identifier: Apache-2.0
//! What a bridge says when it ends: where every packet went, and what each rule did.

use turboflow_engine::OwnCount;
use turboflow_formats::table::{Align, Table, bytes};

use super::control::Control;
use crate::engines::Closing;
use crate::units::{counted, grouped};

/// What may become of a packet: the counter, in words, and what to do where it is a loss.
const FATES: [(&str, &str, Option<&str>); 5] = [
    ("bridge_forwarded", "forwarded", None),
    ("bridge_dropped", "dropped by rule", None),
    (
        "bridge_too_long",
        "too long for the other port",
        Some("give both ports one MTU, and switch off what merges frames (`ethtool -k`)"),
    ),
    (
        "bridge_redirect_errors",
        "refused by the other port",
        Some(
            "its far end may take no frames of XDP: of a veth pair, switch GRO on there \
             (`ethtool -K PEER gro on`)",
        ),
    ),
    (
        "bridge_driver_dropped",
        "dropped by the driver of the other port",
        Some("its queue was full: raise its ring (`ethtool -G`), or lower the rate"),
    ),
];

/// The closing words.
pub(super) fn closing(control: &Control, counts: &[OwnCount], received: u64) -> Closing {
    let of = |name: &str| {
        let found = counts.iter().find(|own| own.name == name);
        found.map_or(0, |own| own.count)
    };
    let mut losses = Vec::new();
    let mut table = Table::new([("packets", Align::Left), ("", Align::Right)]);
    table.push(vec!["received".to_owned(), grouped(received)]);
    let mut sum = 0;
    for (name, fate, mend) in FATES {
        let count = of(name);
        sum += count;
        table.push(vec![format!("  {fate}"), grouped(count)]);
        if let Some(mend) = mend.filter(|_| count > 0) {
            losses.push(format!("{} {fate}: {mend}", counted(count, "packet")));
        }
    }
    if sum != received {
        losses.push(format!(
            "{} received, and {} accounted for: a bug in turboflow",
            counted(received, "packet"),
            grouped(sum)
        ));
    }
    let mut summary = table.render(None);
    if control.is_dry_run() {
        let would = counted(of("bridge_would_drop"), "packet");
        summary += &format!("dry run: the rules would have dropped {would}\n");
    }
    summary += &format!("\n{}", by_rule(control));
    Closing { summary, losses }
}

fn by_rule(control: &Control) -> String {
    let mut table = Table::new([
        ("rule", Align::Left),
        ("action", Align::Left),
        ("packets", Align::Right),
        ("bytes", Align::Right),
    ]);
    for rule in control.by_rule() {
        table.push(vec![
            rule.rule,
            rule.action.to_owned(),
            grouped(rule.packets),
            bytes(rule.bytes),
        ]);
    }
    table.render(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: &[(&'static str, u64)]) -> Vec<OwnCount> {
        let own = |&(name, count): &(&'static str, u64)| OwnCount {
            name,
            about: "",
            is_gauge: false,
            count,
        };
        counts.iter().map(own).collect()
    }

    #[test]
    fn every_loss_is_said_with_its_remedy() {
        let control = Control::default();
        let well = closing(
            &control,
            &counts(&[("bridge_forwarded", 1_200), ("bridge_dropped", 34)]),
            1_234,
        );
        assert_eq!(well.losses, [""; 0]);
        for words in ["received", "1,234", "dropped by rule", "34"] {
            assert!(well.summary.contains(words), "{}", well.summary);
        }
        let ill = closing(
            &control,
            &counts(&[
                ("bridge_forwarded", 1),
                ("bridge_too_long", 2),
                ("bridge_redirect_errors", 3),
                ("bridge_driver_dropped", 4),
            ]),
            11,
        );
        let said = ill.losses.join("\n");
        for words in [
            "2 packets too long",
            "gro on",
            "ethtool -G",
            "10 accounted for",
        ] {
            assert!(said.contains(words), "{said}");
        }
        assert_eq!(ill.losses.len(), 4);
    }
}
