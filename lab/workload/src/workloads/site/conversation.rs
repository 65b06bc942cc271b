// SPDX-License-Identifier: Apache-2.0
//! Conversations between the clients and servers of a company.

use turboflow_record::{TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};

use crate::random::Random;
use crate::traffic::{Endpoints, TCP, UDP};

const MILLISECOND_NS: u64 = 1_000_000;
/// IP bytes of a TCP packet without payload.
const EMPTY_IP_BYTES: u16 = 40;
/// Clients start at 10.20.0.10 in the headquarters and at 10.30.0.10 in the branch; the second
/// number is how many there are.
const CLIENTS: [(u32, u64); 2] = [(0x0a14_000a, 300), (0x0a1e_000a, 100)];
/// Percentage of the clients' conversations that start in the branch.
const BRANCH_PERCENT: u64 = 25;
/// Servers on the Internet: 198.18.0.0/15, the range for benchmarks (RFC 2544).
const INTERNET: u32 = 0xc612_0000;
const INTERNET_SERVERS: u64 = 2_000;
/// Servers of the company: 10.20.16.0/24.
pub(super) const SERVERS: u32 = 0x0a14_1000;

/// The location of a service's server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    /// In the company, by the last byte of its address.
    Own(u8),
    /// On the Internet.
    Elsewhere,
    /// In the company, with clients on the Internet.
    Public(u8),
}

/// A kind of conversation.
#[derive(Clone, Copy, Debug)]
struct Service {
    server: Server,
    port: u16,
    protocol: u8,
    /// Percentage of conversations that are of this kind.
    percent: u64,
    /// Mean number of packets with payload.
    mean_packets: f64,
    /// Percentage of these packets that the client sends.
    up_percent: u64,
    /// IP bytes of a packet with payload: from the client, and from the server.
    ip_bytes: [u16; 2],
    /// Mean time between packets.
    gap_ns: u64,
}

#[rustfmt::skip]
const SERVICES: [Service; 7] = [
    // DNS, web and QUIC on the Internet, mail, files, intranet, and the company's own web site.
    Service { server: Server::Own(53), port: 53, protocol: UDP, percent: 38, mean_packets: 0.0, up_percent: 50, ip_bytes: [70, 180], gap_ns: 4 * MILLISECOND_NS },
    Service { server: Server::Elsewhere, port: 443, protocol: TCP, percent: 34, mean_packets: 24.0, up_percent: 35, ip_bytes: [220, 1_340], gap_ns: 60 * MILLISECOND_NS },
    Service { server: Server::Elsewhere, port: 443, protocol: UDP, percent: 8, mean_packets: 40.0, up_percent: 30, ip_bytes: [120, 1_280], gap_ns: 30 * MILLISECOND_NS },
    Service { server: Server::Own(25), port: 993, protocol: TCP, percent: 5, mean_packets: 30.0, up_percent: 45, ip_bytes: [300, 900], gap_ns: 400 * MILLISECOND_NS },
    Service { server: Server::Own(45), port: 445, protocol: TCP, percent: 4, mean_packets: 120.0, up_percent: 45, ip_bytes: [900, 1_100], gap_ns: 20 * MILLISECOND_NS },
    Service { server: Server::Own(80), port: 8_443, protocol: TCP, percent: 5, mean_packets: 20.0, up_percent: 40, ip_bytes: [260, 1_000], gap_ns: 50 * MILLISECOND_NS },
    Service { server: Server::Public(80), port: 443, protocol: TCP, percent: 6, mean_packets: 16.0, up_percent: 40, ip_bytes: [240, 1_200], gap_ns: 80 * MILLISECOND_NS },
];

/// Packets that set up and end a TCP conversation: three each.
const FRAME_PACKETS: u32 = 6;

/// Mean packets and IP bytes of a conversation.
pub(super) fn means() -> (f64, f64) {
    let (mut packets, mut bytes) = (0.0, 0.0);
    for service in SERVICES {
        let share = service.percent as f64 / 100.0;
        let up = service.up_percent as f64 / 100.0;
        let [of_client, of_server] = service.ip_bytes.map(f64::from);
        let payload = up * of_client + (1.0 - up) * of_server;
        // At least one packet has payload; in UDP, two.
        let with_payload = if service.mean_packets == 0.0 {
            2.0
        } else {
            service.mean_packets
        };
        packets += share * with_payload;
        bytes += share * with_payload * payload;
        if service.protocol == TCP {
            packets += share * f64::from(FRAME_PACKETS);
            bytes += share * f64::from(FRAME_PACKETS) * f64::from(EMPTY_IP_BYTES);
        }
    }
    (packets, bytes)
}

/// Share of the conversations that cross the line to the branch.
pub(super) fn branch_share() -> f64 {
    let public = |service: &&Service| matches!(service.server, Server::Public(_));
    let without: u64 = SERVICES.iter().filter(public).map(|one| one.percent).sum();
    (100 - without) as f64 / 100.0 * BRANCH_PERCENT as f64 / 100.0
}

/// How a host answers a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Not at all.
    None,
    /// The port is closed.
    Reset,
    /// The port is open; the client then resets the connection.
    Open,
}

/// The course of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// Handshake, payload, end.
    Whole,
    /// A probe.
    Probe(Answer),
}

/// A packet of a conversation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Its number in the conversation.
    pub(super) step: u32,
    /// Whether the client sends it.
    pub(super) is_up: bool,
    pub(super) ip_length_bytes: u16,
    pub(super) tcp_flags: u16,
    /// The time to the next packet; `None` after the last.
    pub(super) gap_ns: Option<u64>,
}

/// Two hosts, and the state of their conversation.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    number: u64,
    /// The source is the client.
    ends: Endpoints,
    protocol: u8,
    up_percent: u64,
    ip_bytes: [u16; 2],
    gap_ns: u64,
    course: Course,
    step: u32,
    steps: u32,
    crosses_line: bool,
    /// Whether a packet from the server, and one from the client, has been seen.
    seen: [bool; 2],
    random: Random,
}

impl Conversation {
    /// An ordinary conversation, chosen at random.
    pub(super) fn drawn(number: u64, mut random: Random) -> Self {
        let mut rest = random.below(100);
        let service = SERVICES.iter().find(|service| {
            let is_this = rest < service.percent;
            rest = rest.saturating_sub(service.percent);
            is_this
        });
        let service = service.unwrap_or(&SERVICES[0]);
        let is_branch = random.percent(BRANCH_PERCENT);
        let (first, count) = CLIENTS[usize::from(is_branch)];
        let client = first + random.below(count) as u32;
        // Popular servers are contacted more often.
        let popularity = random.fraction() * random.fraction();
        let elsewhere = INTERNET + (popularity * INTERNET_SERVERS as f64) as u32 * 61;
        let (source, destination) = match service.server {
            Server::Own(host) => (client, SERVERS + u32::from(host)),
            Server::Elsewhere => (client, elsewhere),
            Server::Public(host) => (elsewhere, SERVERS + u32::from(host)),
        };
        let heavy_tail = random.exponential().powi(2) / 2.0;
        let payload = (service.mean_packets * heavy_tail).round() as u32;
        let (payload, frame) = match service.protocol {
            TCP => (payload.max(1), FRAME_PACKETS),
            _ => (payload.max(2), 0),
        };
        Self {
            number,
            ends: Endpoints {
                source,
                destination,
                source_port: 32_768 + random.below(28_000) as u16,
                destination_port: service.port,
            },
            protocol: service.protocol,
            up_percent: service.up_percent,
            ip_bytes: service.ip_bytes,
            gap_ns: service.gap_ns,
            course: Course::Whole,
            step: 0,
            steps: payload + frame,
            crosses_line: is_branch && !matches!(service.server, Server::Public(_)),
            seen: [false; 2],
            random,
        }
    }

    /// A large upload over TCP with that many packets.
    pub(super) fn upload(number: u64, ends: Endpoints, packets: u32, lasts_ns: u64) -> Self {
        Self {
            number,
            ends,
            protocol: TCP,
            up_percent: 100,
            ip_bytes: [UPLOAD_IP_BYTES, EMPTY_IP_BYTES],
            gap_ns: lasts_ns / u64::from(packets),
            course: Course::Whole,
            step: 0,
            steps: packets + FRAME_PACKETS,
            crosses_line: false,
            seen: [false; 2],
            random: Random::new(number),
        }
    }

    /// A SYN and the answer to it.
    pub(super) fn probe(number: u64, ends: Endpoints, answer: Answer) -> Self {
        Self {
            gap_ns: 5 * MILLISECOND_NS,
            course: Course::Probe(answer),
            steps: match answer {
                Answer::None => 1,
                Answer::Reset => 2,
                Answer::Open => 3,
            },
            ..Self::upload(number, ends, 1, 0)
        }
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    pub(super) const fn protocol(&self) -> u8 {
        self.protocol
    }

    pub(super) const fn crosses_line(&self) -> bool {
        self.crosses_line
    }

    /// Records that a packet was seen. Returns whether it was the first one in its direction.
    pub(super) const fn see(&mut self, is_up: bool) -> bool {
        let was_seen = self.seen[is_up as usize];
        self.seen[is_up as usize] = true;
        !was_seen
    }

    /// The directions in which packets were seen.
    pub(super) const fn seen(&self) -> [bool; 2] {
        self.seen
    }

    /// Addresses and ports of a packet.
    pub(super) const fn ends(&self, is_up: bool) -> Endpoints {
        let ends = self.ends;
        if is_up {
            return ends;
        }
        Endpoints {
            source: ends.destination,
            destination: ends.source,
            source_port: ends.destination_port,
            destination_port: ends.source_port,
        }
    }

    /// The next packet. There must be one.
    pub(super) fn send(&mut self) -> Sent {
        let step = self.step;
        self.step += 1;
        let (is_up, tcp_flags, ip_length_bytes) = self.packet(step);
        let gap_ns = (self.random.exponential() * self.gap_ns as f64) as u64;
        Sent {
            step,
            is_up,
            ip_length_bytes,
            tcp_flags,
            gap_ns: (self.step < self.steps).then_some(gap_ns.max(1)),
        }
    }

    fn packet(&mut self, step: u32) -> (bool, u16, u16) {
        let empty = EMPTY_IP_BYTES;
        if let Course::Probe(answer) = self.course {
            return match (step, answer) {
                (0, _) => (true, TCP_SYN, empty),
                (1, Answer::Open) => (false, TCP_SYN | TCP_ACK, empty),
                (1, _) => (false, TCP_RST | TCP_ACK, empty),
                _ => (true, TCP_RST, empty),
            };
        }
        if self.protocol != TCP {
            // First a question, then an answer.
            let is_up = step == 0 || step > 1 && self.random.percent(self.up_percent);
            return (is_up, 0, self.ip_bytes[usize::from(!is_up)]);
        }
        match (step, self.steps - step) {
            (0, _) => (true, TCP_SYN, empty),
            (1, _) => (false, TCP_SYN | TCP_ACK, empty),
            (2, _) => (true, TCP_ACK, empty),
            (_, 3) => (true, TCP_FIN | TCP_ACK, empty),
            (_, 2) => (false, TCP_FIN | TCP_ACK, empty),
            (_, 1) => (true, TCP_ACK, empty),
            _ => {
                let is_up = self.random.percent(self.up_percent);
                (is_up, TCP_ACK, self.ip_bytes[usize::from(!is_up)])
            }
        }
    }
}

/// IP bytes of a packet of an upload.
pub(super) const UPLOAD_IP_BYTES: u16 = 1_480;
