// SPDX-License-Identifier: Apache-2.0
//! Decodes messages from standard input, each after its length in four octets in network order.
//! Prints `message,SEQUENCE,RECORDS` for each message with its number of data records, including
//! options records; `flow,...` for each flow with the fields that every format has, times in ms
//! since 1970; and `error,...` for a message that cannot be decoded.

use std::io::{self, Read};
use std::net::IpAddr;

use netgauze_flow_pkt::FlowInfo;
use netgauze_flow_pkt::ie::Field;
use netgauze_flow_pkt::ipfix::{self, IPFIX_VERSION, IpfixPacket};
use netgauze_flow_pkt::netflow::{self, NetFlowV9Packet};
use netgauze_parse_utils::reader::SliceReader;
use netgauze_parse_utils::traits::ParseFromWithOneInput;

/// The templates received so far.
#[derive(Default)]
struct Templates {
    ipfix: ipfix::TemplatesMap,
    netflow: netflow::TemplatesMap,
}

impl Templates {
    /// Decodes a message. Octets after its end are an error.
    fn read(&mut self, message: &[u8]) -> Result<FlowInfo, String> {
        let mut reader = SliceReader::new(message);
        let read = match message
            .first_chunk()
            .map(|octets| u16::from_be_bytes(*octets))
        {
            Some(IPFIX_VERSION) => IpfixPacket::parse(&mut reader, &mut self.ipfix)
                .map(FlowInfo::IPFIX)
                .map_err(|error| error.to_string()),
            _ => NetFlowV9Packet::parse(&mut reader, &mut self.netflow)
                .map(FlowInfo::NetFlowV9)
                .map_err(|error| error.to_string()),
        }?;
        match reader.remaining() {
            0 => Ok(read),
            rest => Err(format!("{rest} octets are left over")),
        }
    }
}

/// The fields of a flow in a data record.
#[derive(Default)]
struct Flow {
    addresses: [Option<IpAddr>; 2],
    ports: [u16; 2],
    protocol: u8,
    packets: u64,
    octets: u64,
    /// First and last time, in ms since 1970.
    times_ms: [i64; 2],
    tcp_flags: u8,
    end_reason: u8,
}

impl Flow {
    fn of(fields: &[Field], started_ms: i64) -> Self {
        let mut flow = Self::default();
        for field in fields {
            flow.take(field, started_ms);
        }
        flow
    }

    /// Adds a field. `started_ms` is the start of the exporter, from which NetFlow counts times.
    fn take(&mut self, field: &Field, started_ms: i64) {
        match field {
            Field::sourceIPv4Address(address) => self.addresses[0] = Some((*address).into()),
            Field::destinationIPv4Address(address) => self.addresses[1] = Some((*address).into()),
            Field::sourceIPv6Address(address) => self.addresses[0] = Some((*address).into()),
            Field::destinationIPv6Address(address) => self.addresses[1] = Some((*address).into()),
            Field::sourceTransportPort(port) => self.ports[0] = *port,
            Field::destinationTransportPort(port) => self.ports[1] = *port,
            Field::protocolIdentifier(protocol) => self.protocol = u8::from(*protocol),
            Field::packetDeltaCount(packets) => self.packets = *packets,
            Field::octetDeltaCount(octets) => self.octets = *octets,
            Field::flowStartMilliseconds(time) => self.times_ms[0] = time.timestamp_millis(),
            Field::flowEndMilliseconds(time) => self.times_ms[1] = time.timestamp_millis(),
            Field::flowStartSysUpTime(ms) => self.times_ms[0] = started_ms + i64::from(*ms),
            Field::flowEndSysUpTime(ms) => self.times_ms[1] = started_ms + i64::from(*ms),
            Field::tcpControlBits(flags) => self.tcp_flags = u8::from(*flags),
            Field::flowEndReason(reason) => self.end_reason = u8::from(*reason),
            _ => {}
        }
    }

    /// Prints the flow, unless it has no addresses, as with options records.
    fn show(&self) {
        let [Some(source), Some(destination)] = self.addresses else {
            return;
        };
        let Self {
            ports, times_ms, ..
        } = self;
        println!(
            "flow,{source},{destination},{},{},{},{},{},{},{},{},{}",
            ports[0],
            ports[1],
            self.protocol,
            self.packets,
            self.octets,
            times_ms[0],
            times_ms[1],
            self.tcp_flags,
            self.end_reason
        );
    }
}

fn main() -> io::Result<()> {
    let mut stdin = io::stdin().lock();
    let mut templates = Templates::default();
    let mut length = [0; 4];
    while stdin.read_exact(&mut length).is_ok() {
        let mut message = vec![0; u32::from_be_bytes(length) as usize];
        stdin.read_exact(&mut message)?;
        match templates.read(&message) {
            Ok(read) => show(&read),
            Err(error) => println!("error,{error}"),
        }
    }
    Ok(())
}

fn show(message: &FlowInfo) {
    let records = message.data_record_fields();
    println!("message,{},{}", message.sequence_number(), records.count());
    let started_ms = match message {
        FlowInfo::IPFIX(_) => 0,
        FlowInfo::NetFlowV9(packet) => {
            packet.unix_time().timestamp_millis() - i64::from(packet.sys_up_time())
        }
    };
    for (_, fields) in message.data_record_fields() {
        Flow::of(fields, started_ms).show();
    }
}
