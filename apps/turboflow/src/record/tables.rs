// SPDX-License-Identifier: Apache-2.0
//! The tables that `turboflow record` prints without an output.

use std::time::Duration;

use turboflow_formats::table::{Align, Table, bytes, count};
use turboflow_record::{Column, ColumnKind, EndReason};
use turboflow_run::Ledger;

use super::report::Report;
use super::summary::{Summary, Sums};
use crate::exit::terminal_width;
use crate::units::grouped;

/// Maximum number of applications in the summary.
const APPLICATIONS: usize = 20;

/// The tables: totals, protocols, applications, end reasons, ledger, and the largest flow records.
pub(super) fn render(report: &Report, summary: &Summary, elapsed: Duration) -> String {
    let width = terminal_width();
    let parts = [
        report.paragraph(elapsed) + "\n",
        protocols(summary, width),
        applications(summary, width),
        end_reasons(&report.ledger),
        ledger(report),
        balance(report),
        traffic(summary),
        // Last, so that it is still on the screen.
        top(summary, width),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

/// The time span of the packets, and their rate.
fn traffic(summary: &Summary) -> String {
    let Some((from_ns, to_ns)) = summary.times_ns() else {
        return String::new();
    };
    let second_of = |time_ns: u64| time_ns / 1_000_000_000 * 1_000_000_000;
    let text = |time_ns| {
        turboflow_query::time_text(second_of(time_ns))
            .replace(['T', 'Z'], " ")
            .trim_end()
            .to_owned()
    };
    let (from, to) = (text(from_ns), text(to_ns));
    let (total, seconds) = (summary.total(), (to_ns - from_ns) as f64 / 1e9);
    let mut line = format!("IP traffic from {from} to {to} UTC, {seconds:.3} s");
    // Rates of less than a second are meaningless.
    if seconds >= 1.0 {
        let rate = |number: u64| count((number as f64 / seconds).round() as u64);
        line += &format!(": {} packets/s", rate(total.packets));
        if summary.ranked_by() == Some("bytes") {
            let rate = rate(total.bytes * 8);
            let gap = if rate.ends_with(char::is_alphabetic) {
                ""
            } else {
                " "
            };
            line += &format!(", {rate}{gap}bit/s");
        }
    }
    line + "\n"
}

fn top(summary: &Summary, width: Option<usize>) -> String {
    let rows = summary.top();
    let (Some(by), false) = (summary.ranked_by(), rows.is_empty()) else {
        return String::new();
    };
    let align = |Column { name, kind, .. }: &Column| {
        let is_named = matches!(name.as_str(), "protocol" | "end_reason");
        let is_number = matches!(kind, ColumnKind::Unsigned { .. } | ColumnKind::Float);
        let is_number = is_number && !is_named;
        (
            name.clone(),
            if is_number { Align::Right } else { Align::Left },
        )
    };
    let mut table = Table::new(summary.shown.iter().map(align));
    rows.into_iter().for_each(|row| table.push(row));
    let names = summary.shown.iter().map(|column| column.name.as_str());
    let ranks: Vec<usize> = names.map(turboflow_query::column_rank).collect();
    let rendered = table.fit(width, &ranks).text;
    format!("Largest flow records by {by} (a flow cut by a timeout has several):\n{rendered}")
}

fn protocols(summary: &Summary, width: Option<usize>) -> String {
    let seen = summary.protocols();
    if seen.is_empty() || !summary.knows_protocols() {
        return String::new();
    }
    let seen = seen.into_iter();
    let rows = seen.map(|(number, sums)| (protocol_name(number), sums));
    let table = shares("protocol", rows.collect(), summary.total(), width);
    format!("Protocols:\n{table}")
}

/// The largest applications, with all others in one row.
fn applications(summary: &Summary, width: Option<usize>) -> String {
    let seen = summary.applications();
    if seen.is_empty() {
        return String::new();
    }
    let named = |(name, sums): &(&str, Sums)| match *name {
        "" => ("(not inspected)".to_owned(), *sums),
        name => (name.to_owned(), *sums),
    };
    let shown = seen.len().min(APPLICATIONS);
    let mut rows: Vec<_> = seen[..shown].iter().map(named).collect();
    if let [_, ..] = &seen[shown..] {
        let mut others = Sums::default();
        seen[shown..].iter().for_each(|(_, sums)| others += *sums);
        rows.push((format!("{} others", seen.len() - shown), others));
    }
    let table = shares("application", rows, summary.total(), width);
    format!("Applications:\n{table}")
}

/// A table of sums with their shares of all bytes.
fn shares(what: &str, rows: Vec<(String, Sums)>, total: Sums, width: Option<usize>) -> String {
    let columns = ["flow records", "packets", "IP bytes", "share"].map(|name| (name, Align::Right));
    let mut table = Table::new([(what, Align::Left)].into_iter().chain(columns));
    for (name, sums) in rows {
        table.push(vec![
            name,
            grouped(sums.records),
            grouped(sums.packets),
            bytes(sums.bytes),
            format!(
                "{:.1} %",
                sums.bytes as f64 * 100.0 / total.bytes.max(1) as f64
            ),
        ]);
    }
    table.render(width)
}

/// The name and number of a common protocol, otherwise its number.
fn protocol_name(number: usize) -> String {
    match turboflow_query::protocol_name(number as u64) {
        Some(name) => format!("{name} ({number})"),
        None => number.to_string(),
    }
}

fn end_reasons(ledger: &Ledger) -> String {
    let exported = &ledger.flows_exported;
    let reasons = [
        (EndReason::IdleTimeout, "", exported.idle_timeout),
        (EndReason::ActiveTimeout, "", exported.active_timeout),
        (EndReason::EndOfFlow, ": FIN or RST", exported.end_of_flow),
        (
            EndReason::ForcedEnd,
            ": the input ended, or its clock was set back",
            exported.forced_end,
        ),
        (
            EndReason::LackOfResources,
            ": the table was full",
            exported.lack_of_resources,
        ),
    ];
    let mut table = Table::new([("end reason", Align::Left), ("flow records", Align::Right)]);
    for (reason, why, records) in reasons.into_iter().filter(|(.., records)| *records > 0) {
        let (name, number) = (reason.name(), reason as u64);
        table.push(vec![format!("{name} ({number}){why}"), grouped(records)]);
    }
    format!("Why records ended:\n{}", table.render(None))
}

fn ledger(report: &Report) -> String {
    let (ledger, has_ip_bytes) = (&report.ledger, report.closing.has_ip_bytes);
    let packets = packets_table(ledger, has_ip_bytes);
    let records = records_table(ledger, has_ip_bytes);
    format!("Where every packet went:\n{packets}\n{records}")
}

/// Packets and bytes, by what became of them.
fn packets_table(ledger: &Ledger, has_ip_bytes: bool) -> String {
    let bytes = match (has_ip_bytes, ledger.rejected.is_empty()) {
        (false, _) => "bytes on the wire",
        (true, true) => "IP bytes",
        // Those that probes rejected have no IP length.
        (true, false) => "IP bytes (of frames, if not recorded)",
    };
    let mut table = Table::new([
        ("packets", Align::Left),
        ("", Align::Right),
        (bytes, Align::Right),
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

/// Counts of microflow records, flows and flow records, and counts from the source.
fn records_table(ledger: &Ledger, has_ip_bytes: bool) -> String {
    let evicted = &ledger.microflows_evicted;
    let records = [
        (
            "microflow records evicted",
            evicted.total() - evicted.bypass,
        ),
        ("packets that bypassed the microflow table", evicted.bypass),
        ("microflow records merged", ledger.microflows_merged),
        ("flows opened", ledger.flows_opened),
        ("most flows open at once", ledger.flows_peak),
        ("flow records exported", ledger.flows_exported.total()),
    ];
    let mut table = Table::new([("records", Align::Left), ("", Align::Right)]);
    for (name, count) in records {
        table.push(vec![name.to_owned(), grouped(count)]);
    }
    if let Some(inspection) = &ledger.inspection {
        let opened = grouped(inspection.inspections_opened);
        table.push(vec!["flows inspected for applications".to_owned(), opened]);
        let packets = grouped(inspection.packets_inspected);
        table.push(vec!["packets inspected".to_owned(), packets]);
        let named = grouped(inspection.records_named);
        table.push(vec!["flow records with an application".to_owned(), named]);
    }
    if let Some(telemetry) = &ledger.telemetry {
        let read = grouped(telemetry.packets_read);
        table.push(vec!["packets with in-band telemetry".to_owned(), read]);
    }
    let telemetry = ledger.telemetry.clone().unwrap_or_default();
    let (seen, dropped) = match has_ip_bytes {
        false => (
            "packets seen at the interfaces",
            "packets lost before the capture (as it reports)",
        ),
        true => (
            "packets that arrived in records, were rejected by probes, or are missing",
            "packets that are missing, as probes report",
        ),
    };
    let exceptions = [
        (
            "packets whose telemetry lacks hops",
            telemetry.packets_incomplete,
        ),
        (
            "packets whose telemetry was not read",
            telemetry.packets_unread(),
        ),
        ("frames with further reports", telemetry.reports_skipped),
        ("times the clock was set back", ledger.clock_steps),
        ("packets without a time", ledger.packets_without_time),
        (
            "packets before 1970 or after 2554",
            ledger.packets_time_clamped,
        ),
        (
            "packets longer than their frame",
            ledger.packets_longer_than_frame,
        ),
        (seen, ledger.source_seen),
        ("packets left in the ring", ledger.source_unread),
        (dropped, ledger.source_dropped),
    ];
    for (name, count) in exceptions.into_iter().filter(|(_, count)| *count > 0) {
        table.push(vec![name.to_owned(), grouped(count)]);
    }
    table.render(None)
}

fn balance(report: &Report) -> String {
    if !report.imbalances.is_empty() {
        return String::new();
    }
    let whole = report.closing.accounted_for;
    let whole = whole.unwrap_or("every packet and byte");
    format!("The ledger balances: {whole} is in a flow record or in a counter.\n")
}
