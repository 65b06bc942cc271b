// SPDX-License-Identifier: Apache-2.0
//! Flow keys as plain lists of values.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use turboflow_record::{Definition, Input, InputValues, KeyField, Packet};

use super::MeterOptions;
use super::features::input_of_packet;
use super::records::OwnedValue;

/// One value per key field, in the definition's order.
pub(super) type FlowKey = Vec<KeyValue>;

/// One value of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KeyValue {
    Absent,
    Address(IpAddr),
    Number(u64),
}

impl From<&KeyValue> for OwnedValue {
    fn from(value: &KeyValue) -> Self {
        match value {
            KeyValue::Absent => Self::Absent,
            KeyValue::Address(address) => Self::Address(*address),
            KeyValue::Number(number) => Self::Unsigned(*number),
        }
    }
}

/// The key of a packet's flow, and whether the packet runs against it. In biflows both directions
/// share a key: the smaller of the two.
pub(super) fn of_packet(
    definition: &Definition,
    packet: &Packet,
    values: &InputValues,
    options: &MeterOptions,
) -> (FlowKey, bool) {
    let read = |field: &KeyField| value_of(*field, packet, values);
    let forward: FlowKey = definition.key.iter().map(read).collect();
    if !options.biflow {
        return (forward, false);
    }
    let backward = reverse(definition, &forward);
    if backward < forward {
        (backward, true)
    } else {
        (forward, false)
    }
}

/// The key with its endpoints swapped.
pub(super) fn reverse(definition: &Definition, key: &FlowKey) -> FlowKey {
    let place = |field| definition.key.iter().position(|&other| other == field);
    let other_side =
        |(index, field): (usize, &KeyField)| key[place(mirror(*field)).unwrap_or(index)].clone();
    definition.key.iter().enumerate().map(other_side).collect()
}

const fn mirror(field: KeyField) -> KeyField {
    match field {
        KeyField::SourceAddress => KeyField::DestinationAddress,
        KeyField::DestinationAddress => KeyField::SourceAddress,
        KeyField::SourcePort => KeyField::DestinationPort,
        KeyField::DestinationPort => KeyField::SourcePort,
        KeyField::OuterSourceAddress => KeyField::OuterDestinationAddress,
        KeyField::OuterDestinationAddress => KeyField::OuterSourceAddress,
        KeyField::Input(Input::SourceMac) => KeyField::Input(Input::DestinationMac),
        KeyField::Input(Input::DestinationMac) => KeyField::Input(Input::SourceMac),
        other => other,
    }
}

fn value_of(field: KeyField, packet: &Packet, values: &InputValues) -> KeyValue {
    let tuple = &packet.tuple;
    match field {
        KeyField::SourceAddress => KeyValue::Address(tuple.source()),
        KeyField::DestinationAddress => KeyValue::Address(tuple.destination()),
        KeyField::SourcePort => KeyValue::Number(tuple.source_port().into()),
        KeyField::DestinationPort => KeyValue::Number(tuple.destination_port().into()),
        KeyField::Protocol => KeyValue::Number(tuple.protocol().into()),
        KeyField::OuterSourceAddress => outer_address(values, 0),
        KeyField::OuterDestinationAddress => outer_address(values, 1),
        KeyField::Input(input) => {
            input_of_packet(input, packet, values).map_or(KeyValue::Absent, KeyValue::Number)
        }
    }
}

/// An outer address. IPv4 uses the first four bytes; two all-zero addresses mean no tunnel.
fn outer_address(values: &InputValues, end: usize) -> KeyValue {
    let both = values.outer_addresses;
    let bytes = both[end];
    if both == [[0; 16]; 2] {
        KeyValue::Absent
    } else if both.iter().all(|address| address[4..] == [0; 12]) {
        KeyValue::Address(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into())
    } else {
        KeyValue::Address(Ipv6Addr::from(bytes).into())
    }
}
