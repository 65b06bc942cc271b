// SPDX-License-Identifier: Apache-2.0
//! The tables that `turboflow record` prints without an output.

use std::time::Duration;

use rustix::termios::tcgetwinsize;
use turboflow_formats::table::{Align, Table, bytes};
use turboflow_record::{Column, ColumnKind};
use turboflow_run::Ledger;

use super::report::Report;
use super::summary::Summary;
use crate::units::grouped;

/// Totals, largest flow records, protocols, end reasons and ledger.
pub(super) fn render(report: &Report, summary: &Summary, elapsed: Duration) -> String {
    let width = tcgetwinsize(std::io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col));
    let parts = [
        report.paragraph(elapsed) + "\n",
        top(summary, width),
        protocols(summary, width),
        end_reasons(&report.ledger),
        ledger(&report.ledger),
        balance(report),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

fn top(summary: &Summary, width: Option<usize>) -> String {
    let rows = summary.top();
    let (Some(by), false) = (summary.ranked_by(), rows.is_empty()) else {
        return String::new();
    };
    let align = |Column { name, kind, .. }: &Column| {
        let is_number = matches!(kind, ColumnKind::Unsigned { .. } | ColumnKind::Float);
        (
            name.clone(),
            if is_number { Align::Right } else { Align::Left },
        )
    };
    let mut table = Table::new(summary.shown.iter().map(align));
    rows.into_iter().for_each(|row| table.push(row));
    let rendered = table.render(width);
    format!("Largest flow records by {by} (a flow cut by a timeout has several):\n{rendered}")
}

fn protocols(summary: &Summary, width: Option<usize>) -> String {
    let seen = summary.protocols();
    if seen.is_empty() || !summary.knows_protocols() {
        return String::new();
    }
    let total = seen.iter().map(|(_, sums)| sums.bytes).sum::<u64>().max(1);
    let columns = ["flow records", "packets", "bytes", "share"].map(|name| (name, Align::Right));
    let mut table = Table::new([("protocol", Align::Left)].into_iter().chain(columns));
    for (number, sums) in seen {
        table.push(vec![
            protocol_name(number),
            grouped(sums.records),
            grouped(sums.packets),
            bytes(sums.bytes),
            format!("{:.1} %", sums.bytes as f64 * 100.0 / total as f64),
        ]);
    }
    format!("Protocols:\n{}", table.render(width))
}

/// The name of a common protocol, otherwise its number.
fn protocol_name(number: usize) -> String {
    let name = match number {
        0 => "hop-by-hop",
        1 => "ICMP",
        2 => "IGMP",
        4 => "IPv4",
        6 => "TCP",
        17 => "UDP",
        33 => "DCCP",
        41 => "IPv6",
        46 => "RSVP",
        47 => "GRE",
        50 => "ESP",
        51 => "AH",
        58 => "ICMPv6",
        88 => "EIGRP",
        89 => "OSPF",
        103 => "PIM",
        112 => "VRRP",
        115 => "L2TP",
        132 => "SCTP",
        136 => "UDP-Lite",
        137 => "MPLS",
        _ => return number.to_string(),
    };
    format!("{name} ({number})")
}

fn end_reasons(ledger: &Ledger) -> String {
    let exported = &ledger.flows_exported;
    let reasons = [
        ("1 idle timeout", exported.idle_timeout),
        ("2 active timeout", exported.active_timeout),
        ("3 end of flow (FIN or RST)", exported.end_of_flow),
        ("4 end of input", exported.forced_end),
        ("5 lack of resources", exported.lack_of_resources),
    ];
    let mut table = Table::new([("end reason", Align::Left), ("flow records", Align::Right)]);
    for (reason, records) in reasons.into_iter().filter(|(_, records)| *records > 0) {
        table.push(vec![reason.to_owned(), grouped(records)]);
    }
    format!("Why records ended:\n{}", table.render(None))
}

fn ledger(ledger: &Ledger) -> String {
    let (packets, records) = (packets_table(ledger), records_table(ledger));
    format!("Where every packet went:\n{packets}\n{records}")
}

/// Packets and their bytes by where they went.
fn packets_table(ledger: &Ledger) -> String {
    let mut table = Table::new([
        ("packets", Align::Left),
        ("", Align::Right),
        ("bytes on the wire", Align::Right),
    ]);
    let mut line = |name: &str, packets: u64, bytes: u64| {
        table.push(vec![name.to_owned(), grouped(packets), grouped(bytes)]);
    };
    line("received", ledger.packets_received, ledger.bytes_received);
    line(
        "  recorded in flows",
        ledger.packets_recorded,
        ledger.frame_bytes_metered,
    );
    let classes = [
        (
            "non_ip",
            "not IP",
            ledger.packets_non_ip,
            ledger.bytes_non_ip,
        ),
        (
            "malformed",
            "malformed",
            ledger.packets_malformed,
            ledger.bytes_malformed,
        ),
        (
            "truncated",
            "truncated",
            ledger.packets_truncated,
            ledger.bytes_truncated,
        ),
        (
            "filtered",
            "left out by the filter",
            ledger.packets_filtered,
            ledger.bytes_filtered,
        ),
    ];
    for (class, name, packets, bytes) in classes.into_iter().filter(|class| class.2 > 0) {
        line(&format!("  {name}"), packets, bytes);
        for reason in ledger
            .rejected
            .iter()
            .filter(|reason| reason.class == class)
        {
            let name = reason.reason.replace('_', " ");
            line(&format!("    {name}"), reason.packets, reason.bytes);
        }
    }
    let unknown = (
        ledger.packets_unknown_link_type,
        ledger.bytes_unknown_link_type,
    );
    if unknown.0 > 0 {
        line("  of unknown link type", unknown.0, unknown.1);
    }
    table.render(None)
}

/// What packets became, and what the source says of them.
fn records_table(ledger: &Ledger) -> String {
    let evicted = &ledger.microflows_evicted;
    let records = [
        (
            "microflow records evicted",
            evicted.total() - evicted.bypass,
        ),
        ("packets past the microflow table", evicted.bypass),
        ("microflow records merged", ledger.microflows_merged),
        ("flows opened", ledger.flows_opened),
        ("flows open at once, at most", ledger.flows_peak),
        ("flow records exported", ledger.flows_exported.total()),
    ];
    let mut table = Table::new([("records", Align::Left), ("", Align::Right)]);
    for (name, count) in records {
        table.push(vec![name.to_owned(), grouped(count)]);
    }
    let exceptions = [
        ("times the clock was set back", ledger.clock_steps),
        ("packets seen at the interfaces", ledger.source_seen),
        ("packets left in the ring", ledger.source_unread),
        (
            "packets lost before the capture (its own count)",
            ledger.source_dropped,
        ),
    ];
    for (name, count) in exceptions.into_iter().filter(|(_, count)| *count > 0) {
        table.push(vec![name.to_owned(), grouped(count)]);
    }
    table.render(None)
}

fn balance(report: &Report) -> String {
    if report.imbalances.is_empty() {
        return "The ledger balances: every packet and byte is in a flow record or in a counter.\n"
            .to_owned();
    }
    String::new()
}
