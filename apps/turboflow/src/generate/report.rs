// SPDX-License-Identifier: Apache-2.0
//! Reports requested and generated rates.

use turboflow_formats::table;
use turboflow_workload::links::LinksStatistics;
use turboflow_workload::telemetry::{
    Carrier, INT_DSCP, INT_PORT, MeasuredFlow, Network, REPORT_PORT,
};
use turboflow_workload::traffic::{Skew, Statistics, TrafficConfig};
use turboflow_workload::workloads::{self, Asked};

use crate::units::{counted, grouped};

/// The report for traffic from options.
pub(super) fn of_traffic(config: &TrafficConfig, statistics: &Statistics) -> String {
    let packets = statistics.packets.max(1) as f64;
    let share = |part: u64| 100.0 * part as f64 / packets;
    let seconds = statistics.last_ns.saturating_sub(config.start_ns) as f64 / 1e9;
    let weights = config.frame_sizes.weighted();
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let mean: f64 = weights
        .iter()
        .map(|(bytes, weight)| f64::from(*bytes) * weight / total)
        .sum();
    let births = config.births_per_second * seconds;
    let mut lines = vec![
        format!(
            "{} in {seconds:.3} s of the capture's time ({}/s, {}b/s), {} on the wire, {} captured; \
             seed {}",
            counted(statistics.packets, "packet"),
            table::count((packets / seconds.max(1e-9)) as u64),
            scaled(statistics.wire_bytes as f64 * 8.0 / seconds.max(1e-9)).trim_end(),
            table::bytes(statistics.wire_bytes),
            table::bytes(statistics.captured_bytes),
            config.seed,
        ),
        format!(
            "flows: {} with a packet (asked for {} active at any time), {} born (asked for \
             {births:.0}), {} ended",
            grouped(statistics.flows),
            grouped(config.flows),
            grouped(statistics.births),
            grouped(statistics.deaths),
        ),
        format!(
            "mean frame {:.1} bytes (asked for {mean:.1}; none is shorter than its headers)",
            statistics.wire_bytes as f64 / packets
        ),
    ];
    let shares = [
        ("IPv6", statistics.ipv6_packets, config.ipv6_share),
        ("VLAN", statistics.vlan_packets, config.vlan_share),
        ("UDP", statistics.udp_packets, config.udp_share),
    ];
    let shares = shares.map(|(name, packets, asked)| {
        format!(
            "{name} {:.1} % (asked for {:.1} % of the flows)",
            share(packets),
            asked * 100.0
        )
    });
    lines.push(format!("packets: {}", shares.join(", ")));
    if let Skew::Zipf {
        exponent,
        mean_train_length,
    } = config.skew
    {
        let length = packets / statistics.trains.max(1) as f64;
        lines.push(format!(
            "Zipf exponent {exponent}; {} trains of {length:.1} packets (asked for \
             {mean_train_length})",
            grouped(statistics.trains),
        ));
    }
    lines.join("\n")
}

/// The report for a workload. `hit`: the generated rates.
pub(super) fn of_workload(asked: &Asked, hit: &workloads::Statistics, seed: u64) -> String {
    let mut lines = vec![
        format!(
            "{} in {:.3} s of the traffic's time, {} of IP, {} captured; seed {seed}",
            counted(hit.packets, "packet"),
            hit.seconds(),
            table::bytes(hit.ip_bytes),
            table::bytes(hit.captured_bytes),
        ),
        format!("{:<20}{:>12}{:>12}", "", "asked for", "came out"),
    ];
    for (name, asked, hit) in [
        (
            "packets/s",
            asked.packets_per_second,
            hit.packets_per_second(),
        ),
        (
            "bits/s of IP",
            asked.bits_per_second(),
            hit.bits_per_second(),
        ),
        (
            "new flows/s",
            asked.flows_per_second,
            hit.flows_per_second(),
        ),
        (
            "packets a flow",
            asked.mean_flow_packets(),
            hit.mean_flow_packets(),
        ),
        (
            "IP bytes a packet",
            asked.mean_packet_bytes,
            hit.mean_packet_bytes(),
        ),
    ] {
        // Without births and deaths of flows, this rate does not exist.
        if asked == 0.0 || asked.is_infinite() {
            continue;
        }
        let off = 100.0 * (hit / asked - 1.0);
        let (asked, hit) = (scaled(asked), scaled(hit));
        lines.push(format!("{name:<20}{asked:>12}{hit:>12} {off:>+7.1} %"));
    }
    let flows = hit.flows;
    lines.push(format!(
        "flows: {} with a packet; {} born, {} ended; {} under way, with or without a packet so far",
        grouped(flows.seen),
        grouped(flows.births),
        grouped(flows.deaths),
        grouped(flows.active),
    ));
    lines.join("\n")
}

/// A queue depth above this counts as deep, in a network with telemetry.
const DEEP: u32 = 100;
/// Hops of the longest path without a loop: a packet with more hops went through a loop.
const WIDTH: u64 = 4;

/// The report for a network with telemetry: its packets, and what its nodes wrote into them.
pub(super) fn of_network(network: &Network, seed: u64) -> String {
    let (packets, flows) = (network.packets(), network.flows());
    let (wire_bytes, captured_bytes) = network.bytes();
    let times = || packets.iter().map(|(packet, _)| packet.timestamp_ns);
    let first_ns = times().next().unwrap_or(0);
    let seconds = times().next_back().unwrap_or(first_ns) - first_ns;
    let mut lines = vec![format!(
        "{} in {:.3} s of the traffic's time, {} on the wire, {} captured; seed {seed}",
        counted(packets.len() as u64, "packet"),
        seconds as f64 / 1e9,
        table::bytes(wire_bytes),
        table::bytes(captured_bytes),
    )];
    for carrier in Carrier::ALL {
        let way = match carrier {
            Carrier::IntByDscp => format!("INT behind TCP and UDP, DSCP {INT_DSCP}"),
            Carrier::IntByPort => format!("INT in UDP to port {INT_PORT}"),
            Carrier::Report => format!("reports to UDP port {REPORT_PORT}"),
            Carrier::Ioam => "IOAM in IPv6".to_owned(),
        };
        let count = packets.iter().filter(|(_, its)| *its == carrier).count();
        if count > 0 {
            lines.push(format!("{way}: {}", counted(count as u64, "packet")));
        }
    }
    let found = |what: &str, is_it: &dyn Fn(&&MeasuredFlow) -> bool| {
        let of_them: Vec<_> = flows.iter().filter(is_it).collect();
        let most = of_them.iter().max_by_key(|flow| flow.packets)?;
        Some(format!(
            "{what}: {}; most packets, {}, from {} port {} to {}, queues up to {}, {} at most",
            counted(of_them.len() as u64, "flow"),
            grouped(most.packets),
            most.tuple.source(),
            most.tuple.source_port(),
            most.tuple.destination(),
            most.max_queue_depth,
            counted(most.max_hop_count, "hop"),
        ))
    };
    let deep = found("deep queues", &|flow| flow.max_queue_depth > DEEP);
    lines.extend(deep);
    lines.extend(found("loops", &|flow| flow.max_hop_count > WIDTH));
    lines.push(format!(
        "flows: {} with a packet",
        grouped(flows.len() as u64)
    ));
    lines.join("\n")
}

/// The report for the links of a router.
pub(super) fn of_links(links: usize, hit: &LinksStatistics, seed: u64) -> String {
    let seconds = (hit.last_ns - hit.first_ns).max(1) as f64 / 1e9;
    let (packets, bits) = (hit.packets as f64, hit.wire_bytes as f64 * 8.0);
    format!(
        "{} of {} in {seconds:.3} s of the traffic's time; seed {seed}\n\
         packets/s {}, bits/s on the wire {}; of each link {} and {}",
        counted(hit.packets, "packet"),
        counted(links as u64, "link"),
        scaled(packets / seconds).trim_end(),
        scaled(bits / seconds).trim_end(),
        scaled(packets / seconds / links as f64).trim_end(),
        scaled(bits / seconds / links as f64).trim_end(),
    )
}

/// The report for packets sent out of an interface.
#[cfg(target_os = "linux")]
pub(super) fn of_sending(name: &str, sent: &super::sending::Sent) -> String {
    let seconds = |ns: u64| ns.max(1) as f64 / 1e9;
    let packets = sent.packets as f64;
    let rate = packets / seconds(sent.took_ns);
    let asked = match sent.asked_ns {
        0 => "at full speed".to_owned(),
        asked_ns => {
            let asked = packets / seconds(asked_ns);
            let off = 100.0 * (rate / asked - 1.0);
            format!("asked for {}, off by {off:+.2} %", scaled(asked).trim_end())
        }
    };
    format!(
        "interface {name}: {} ({}) sent in {:.3} s: {} packets/s, {asked}; its queue was full {}",
        counted(sent.packets, "packet"),
        table::bytes(sent.bytes),
        seconds(sent.took_ns),
        scaled(rate).trim_end(),
        counted(sent.waits, "time"),
    )
}

/// A number with four digits and a unit prefix.
fn scaled(number: f64) -> String {
    let (number, unit) = match number {
        n if n >= 1e9 => (n / 1e9, " G"),
        n if n >= 1e6 => (n / 1e6, " M"),
        n if n >= 1e3 => (n / 1e3, " k"),
        n => (n, "  "),
    };
    let digits = if number >= 100.0 { 1 } else { 2 };
    format!("{number:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::scaled;

    #[test]
    fn numbers_have_a_unit() {
        let written = [124e6, 1_291e3, 1.5e9, 49.45, 770.0].map(scaled);
        assert_eq!(
            written,
            ["124.0 M", "1.29 M", "1.50 G", "49.45  ", "770.0  "]
        );
    }
}
