// SPDX-License-Identifier: Apache-2.0
//! Every value is decoded unchanged.

use std::net::IpAddr;

use netflow_parser::{NetflowPacket, NetflowParser};
use proptest::prelude::*;
use turboflow_formats::wire::{Protocol, WireOptions};
use turboflow_record::{Definition, TimeUnit};

use super::decode::{T0_NS, decode, messages, number, options};
use crate::support::{Owned, default_schema};

/// Records of the default definition.
fn default_rows() -> impl Strategy<Value = Vec<Vec<Owned>>> {
    let addresses = prop_oneof![
        any::<[[u8; 4]; 2]>().prop_map(|pair| pair.map(IpAddr::from)),
        any::<[[u16; 8]; 2]>().prop_map(|pair| pair.map(IpAddr::from)),
    ];
    let times = (0..40_000_000_000_u64, 0..50_000_000_000_u64);
    let numbers = (
        any::<[u16; 2]>(),
        any::<u8>(),
        any::<[u64; 2]>(),
        any::<[u32; 2]>(),
    );
    let row = (
        addresses,
        times,
        numbers,
        any::<u16>(),
        any::<[u8; 3]>(),
        1..6_u64,
    );
    let row = row.prop_map(
        |(addresses, times, (ports, protocol, counts, lengths), flags, ttl, end)| {
            let first = T0_NS + times.0;
            let mut row = addresses.map(Owned::Address).to_vec();
            row.extend(ports.map(|port| Owned::Unsigned(port.into())));
            row.push(Owned::Unsigned(protocol.into()));
            row.extend(counts.map(Owned::Unsigned));
            row.extend([first, first + times.1].map(Owned::Unsigned));
            row.push(Owned::Unsigned((flags & 0xfff).into()));
            row.extend(lengths.map(|length| Owned::Unsigned(length.into())));
            row.extend(ttl.map(|value| Owned::Unsigned(value.into())));
            row.push(Owned::Unsigned(end));
            row
        },
    );
    prop::collection::vec(row, 0..200)
}

/// Expected values of a record's fields; `time` is applied to nanoseconds.
fn expected(row: &[Owned], flags_mask: u64, time: impl Fn(u64) -> u64) -> Vec<u64> {
    let numbers = row.iter().enumerate().map(|(index, value)| match value {
        Owned::Address(IpAddr::V4(address)) => u64::from(u32::from(*address)),
        // The low half is sufficient to tell addresses apart.
        Owned::Address(IpAddr::V6(address)) => u128::from(*address) as u64,
        Owned::Unsigned(ns) if index == 7 || index == 8 => time(*ns),
        Owned::Unsigned(flags) if index == 9 => flags & flags_mask,
        Owned::Unsigned(number) => *number,
        other => panic!("{other:?}"),
    });
    numbers.collect()
}

fn compare(protocol: Protocol, rows: &[Vec<Owned>], flags_mask: u64) {
    let (schema, definition) = (default_schema(), Definition::default());
    let options = options(&definition, TimeUnit::Milliseconds);
    let (messages, lost) = messages(protocol, &schema, &options, rows);
    assert_eq!(lost, 0);
    let flows = decode(&messages);
    let read: Vec<Vec<u64>> = flows
        .iter()
        .map(|flow| flow.iter().map(|field| number(field)).collect())
        .collect();
    let wanted: Vec<_> = rows
        .iter()
        .map(|row| expected(row, flags_mask, |ns| ns / 1_000_000))
        .collect();
    assert_eq!(read, wanted);
    let sent: u64 = messages.iter().map(|message| message.flows).sum();
    assert_eq!(sent, rows.len() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ipfix_reads_back(rows in default_rows()) {
        // The decoder's type for flags has only nine of the twelve bits sent.
        compare(Protocol::Ipfix, &rows, 0x1ff);
    }

    #[test]
    fn netflow9_reads_back(rows in default_rows()) {
        compare(Protocol::Netflow9, &rows, 0xff);
    }

    #[test]
    fn netflow5_adds_up_and_counts_what_it_cannot_hold(rows in default_rows()) {
        let rows: Vec<_> = rows.into_iter().map(with_plausible_counts).collect();
        let options = options(&Definition::default(), TimeUnit::Milliseconds);
        let (messages, lost) = messages(Protocol::Netflow5, &default_schema(), &options, &rows);
        decode(&messages);
        let v4 = |row: &&Vec<Owned>| matches!(row[0], Owned::Address(IpAddr::V4(_)));
        prop_assert_eq!(lost as usize, rows.iter().filter(|row| !v4(row)).count());
        let sum = |index: usize| -> u64 {
            rows.iter().filter(v4).map(|row| expected(row, 0xff, |ns| ns)[index]).sum()
        };
        let (mut packets, mut bytes, mut parser) = (0, 0, NetflowParser::default());
        for message in &messages {
            for packet in parser.parse_bytes(&message.bytes).packets {
                let NetflowPacket::V5(packet) = packet else { panic!("not v5") };
                packets += packet.flowsets.iter().map(|flow| u64::from(flow.d_pkts)).sum::<u64>();
                bytes += packet.flowsets.iter().map(|flow| u64::from(flow.d_octets)).sum::<u64>();
            }
        }
        prop_assert_eq!((packets, bytes), (sum(5), sum(6)));
    }
}

/// Counts that need splitting occasionally, but not into hundreds of records each.
fn with_plausible_counts(mut row: Vec<Owned>) -> Vec<Owned> {
    let [Owned::Unsigned(packets), Owned::Unsigned(bytes)] = &mut row[5..7] else {
        panic!("counts")
    };
    *packets = *packets % (1 << 34) + 8;
    *bytes %= 1 << 34;
    row
}

#[test]
fn times_are_exact_in_the_unit_asked_for() {
    let ns = [T0_NS + 123_456_789, T0_NS + 987_654_321];
    let row = |ns: [u64; 2]| {
        let line = format!(
            "192.0.2.1 192.0.2.2 1 2 6 1 40 {} {} 2 40 40 64 64 0 4",
            ns[0], ns[1]
        );
        line.split(' ')
            .enumerate()
            .map(|(index, text)| match index {
                0 | 1 => Owned::Address(text.parse().unwrap()),
                _ => Owned::Unsigned(text.parse().unwrap()),
            })
            .collect::<Vec<_>>()
    };
    for (time, unit_ns) in [(TimeUnit::Microseconds, 1_000), (TimeUnit::Nanoseconds, 1)] {
        let options = options(&Definition::default(), time);
        let (messages, _) = messages(Protocol::Ipfix, &default_schema(), &options, &[row(ns)]);
        // Compares raw octets, to be independent of the decoder's handling of NTP times.
        let data = messages.iter().find(|message| message.flows == 1).unwrap();
        let at = 16 + 4 + 8 + 4 + 1 + 16;
        for (place, ns) in [(at, ns[0]), (at + 8, ns[1])] {
            let ntp = number(&data.bytes[place..place + 8]);
            let seconds = (ntp >> 32) - 2_208_988_800;
            let units = ((ntp & 0xffff_ffff) * (1_000_000_000 / unit_ns)) >> 32;
            assert_eq!(seconds * 1_000_000_000 / unit_ns + units, ns / unit_ns);
        }
    }
}

/// A record of the default definition with the given bytes, first and last time.
fn line(bytes: u64, times_ns: [u64; 2]) -> Vec<Owned> {
    let [first_ns, last_ns] = times_ns;
    let line =
        format!("192.0.2.1 192.0.2.2 1 2 6 9000000 {bytes} {first_ns} {last_ns} 2 40 40 64 64 0 4");
    let fields = line.split(' ').enumerate();
    let field = |(index, text): (usize, &str)| match index {
        0 | 1 => Owned::Address(text.parse().unwrap()),
        _ => Owned::Unsigned(text.parse().unwrap()),
    };
    fields.map(field).collect()
}

/// A flow that needs too many parts and another origin must not change earlier flows.
#[test]
fn a_flow_that_netflow5_cannot_hold_keeps_the_origin_of_earlier_flows() {
    const DAY_NS: u64 = 86_400_000_000_000;
    let later_ns = T0_NS + 60 * DAY_NS;
    let rows = [
        line(40, [T0_NS, T0_NS + 5_000_000]),
        line(5 << 42, [later_ns, later_ns]),
    ];
    let options = options(&Definition::default(), TimeUnit::Milliseconds);
    let (messages, lost) = messages(Protocol::Netflow5, &default_schema(), &options, &rows);
    assert_eq!(lost, 1);
    let [message] = &messages[..] else {
        panic!("one message")
    };
    let word = |at: usize| number(&message.bytes[at..at + 4]);
    let boot_ms = word(8) * 1_000 + word(12) / 1_000_000 - word(4);
    let told_ms = [48, 52].map(|at| boot_ms + word(at));
    assert_eq!(told_ms, [T0_NS / 1_000_000, T0_NS / 1_000_000 + 5]);
}

/// Clocks that were never set, and captures whose times start at 0.
#[test]
fn the_first_millisecond_of_1970_is_a_time() {
    let line = "192.0.2.1 192.0.2.2 1 2 6 1 40 0 0 2 40 40 64 64 0 4";
    let fields = line.split(' ').enumerate();
    let row: Vec<Owned> = fields
        .map(|(index, text)| match index {
            0 | 1 => Owned::Address(text.parse().unwrap()),
            _ => Owned::Unsigned(text.parse().unwrap()),
        })
        .collect();
    let rows = [row];
    compare(Protocol::Netflow9, &rows, 0xff);
    let options = options(&Definition::default(), TimeUnit::Milliseconds);
    let (messages, _) = messages(Protocol::Netflow5, &default_schema(), &options, &rows);
    let [message] = &messages[..] else {
        panic!("one message")
    };
    let word = |at: usize| number(&message.bytes[at..at + 4]);
    let boot_ms = word(8) * 1_000 + word(12) / 1_000_000 - word(4);
    assert_eq!([48, 52].map(|at| boot_ms + word(at)), [0, 0]);
}

/// Some collectors drop records that have no interface.
#[test]
fn an_interface_that_no_column_has_is_in_every_record() {
    let definition = Definition::default();
    let line =
        "10.0.0.1 10.0.0.2 1 2 6 3 4 1700000000000000000 1700000000000000000 7 8 9 10 11 12 3";
    let rows = crate::support::default_rows(&[line]);
    let fields = |protocol, interface| {
        let options = WireOptions {
            interface,
            ..options(&definition, TimeUnit::Milliseconds)
        };
        let (messages, _) = messages(protocol, &default_schema(), &options, &rows);
        decode(&messages).remove(0)
    };
    for protocol in [Protocol::Ipfix, Protocol::Netflow9] {
        let (without, with) = (fields(protocol, None), fields(protocol, Some(0x0102_0304)));
        let (columns, added) = with.split_at(without.len());
        assert_eq!(columns, without);
        assert_eq!(added, [vec![1, 2, 3, 4], vec![0; 4]], "{protocol:?}");
    }
    let options = WireOptions {
        interface: Some(7),
        ..options(&definition, TimeUnit::Milliseconds)
    };
    let (messages, _) = messages(Protocol::Netflow5, &default_schema(), &options, &rows);
    // Header, addresses, next hop.
    assert_eq!(messages[0].bytes[24 + 12..][..4], [0, 7, 0, 0]);
}
