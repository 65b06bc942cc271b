// SPDX-License-Identifier: Apache-2.0
//! The parser in the simplest possible code: which frames the host gets whole, and what the others
//! are.

use turboflow_engine_rtl::{Arrival, Damage, GivenFrame, Handed, Parsed, Verdict};

/// Bytes after the fixed IP header that the parser sees, and extension headers that it follows.
const SEEN: usize = 64;
const STEPS: usize = 4;

const TCP: u8 = 6;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const NO_NEXT: u8 = 59;

fn is_tag(announced: u16) -> bool {
    matches!(announced, 0x8100 | 0x88a8 | 0x9100)
}

fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | 17 | 33 | 132 | 136)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The result for a frame.
pub(crate) fn verdict(frame: &GivenFrame) -> Verdict {
    let bytes = &frame.bytes[..];
    // Two bytes or fewer have no byte in between.
    let has_gap = frame.damage == Damage::Gap && bytes.len() > 2;
    if frame.damage == Damage::Marked || has_gap || bytes.len() > 65_536 {
        return Err(Handed::Damaged);
    }
    let (offset, announced) = link(bytes)?;
    let ip = &bytes[offset..];
    let is_v6 = announced == 0x86dd;
    let Some(first) = ip.first() else {
        return Err(Handed::IpHeader);
    };
    if first >> 4 != if is_v6 { 6 } else { 4 } {
        return Err(Handed::Version);
    }
    let parsed = if is_v6 { v6(ip)? } else { v4(ip)? };
    Ok(Parsed {
        arrival: Arrival {
            time_ns: frame.time_ns,
            ..parsed.arrival
        },
        ..parsed
    })
}

/// The offset of the IP header, and the type that announced it.
fn link(bytes: &[u8]) -> Result<(usize, u16), Handed> {
    if bytes.len() < 14 {
        return Err(Handed::LinkCut);
    }
    let (mut offset, mut announced) = (14, u16_at(bytes, 12));
    for _ in 0..2 {
        if is_tag(announced) {
            if bytes.len() < offset + 4 {
                return Err(Handed::LinkCut);
            }
            announced = u16_at(bytes, offset + 2);
            offset += 4;
        }
    }
    match announced {
        tag if is_tag(tag) => Err(Handed::Tags),
        0x0800 | 0x86dd => Ok((offset, announced)),
        _ => Err(Handed::EtherType),
    }
}

fn v4(ip: &[u8]) -> Result<Parsed, Handed> {
    let header = usize::from(ip[0] & 0xf) * 4;
    if ip.len() < 20 || header < 20 || ip.len() < header {
        return Err(Handed::IpHeader);
    }
    let total = usize::from(u16_at(ip, 2));
    if total == 0 {
        return Err(Handed::NoLength);
    }
    if total < header {
        return Err(Handed::IpHeader);
    }
    let rest = &ip[20..ip.len().min(total)];
    let transport = Transport {
        protocol: ip[9],
        at: header - 20,
        is_later: u16_at(ip, 6) & 0x1fff != 0,
    };
    let (ports, tcp_flags) = transport.read(rest)?;
    let addresses = u64::from_le_bytes(ip[12..20].try_into().unwrap());
    Ok(Parsed {
        arrival: Arrival {
            key: [addresses, transport.word(ports), 0, 0, 0],
            time_ns: 0,
            length_bytes: total as u32,
            tcp_flags,
            ttl: ip[8],
            tos: ip[1],
        },
        is_v6: false,
        is_longer: total > ip.len(),
    })
}

fn v6(ip: &[u8]) -> Result<Parsed, Handed> {
    if ip.len() < 40 {
        return Err(Handed::IpHeader);
    }
    let payload = usize::from(u16_at(ip, 4));
    if payload == 0 && ip[6] != NO_NEXT {
        return Err(Handed::NoLength);
    }
    let length = 40 + payload;
    let rest = &ip[40..ip.len().min(length)];
    let transport = Transport::behind_extensions(rest, ip[6])?;
    let (ports, tcp_flags) = transport.read(rest)?;
    let word = |at: usize| u64::from_le_bytes(ip[8 + 8 * at..16 + 8 * at].try_into().unwrap());
    Ok(Parsed {
        arrival: Arrival {
            key: [word(0), word(1), word(2), word(3), transport.word(ports)],
            time_ns: 0,
            length_bytes: length as u32,
            tcp_flags,
            ttl: ip[7],
            tos: ip[0] << 4 | ip[1] >> 4,
        },
        is_v6: true,
        is_longer: length > ip.len(),
    })
}

/// The place of the transport header, counted from the end of the fixed IP header.
struct Transport {
    protocol: u8,
    at: usize,
    is_later: bool,
}

impl Transport {
    fn behind_extensions(rest: &[u8], next: u8) -> Result<Self, Handed> {
        let (mut protocol, mut at) = (next, 0);
        for step in 0.. {
            let needed = match protocol {
                FRAGMENT => 8,
                0 | 43 | 60 => 2,
                AUTHENTICATION if step < STEPS => return Err(Handed::Extension),
                AUTHENTICATION => return Err(Handed::Deep),
                _ => break,
            };
            if rest.len() < at + needed {
                break;
            }
            if step == STEPS || at + needed > SEEN {
                return Err(Handed::Deep);
            }
            let header = &rest[at..];
            if protocol == FRAGMENT {
                protocol = header[0];
                at += 8;
                if u16_at(header, 2) & 0xfff8 != 0 {
                    return Ok(Self {
                        protocol,
                        at,
                        is_later: true,
                    });
                }
            } else {
                protocol = header[0];
                at += 8 * (usize::from(header[1]) + 1);
            }
        }
        Ok(Self {
            protocol,
            at,
            is_later: false,
        })
    }

    /// Ports and TCP flags, as far as the packet has them.
    fn read(&self, rest: &[u8]) -> Result<([u8; 4], u16), Handed> {
        let has = |needed: usize| match () {
            () if self.is_later || rest.len() < self.at + needed => Ok(false),
            () if self.at + needed > SEEN => Err(Handed::Deep),
            () => Ok(true),
        };
        let (mut ports, mut tcp_flags) = ([0; 4], 0);
        if has_ports(self.protocol) && has(4)? {
            ports.copy_from_slice(&rest[self.at..self.at + 4]);
        }
        if self.protocol == TCP && has(14)? {
            tcp_flags = u16_at(rest, self.at + 12) & 0xfff;
        }
        Ok((ports, tcp_flags))
    }

    /// The last word of a key.
    fn word(&self, ports: [u8; 4]) -> u64 {
        u64::from(u32::from_le_bytes(ports)) | u64::from(self.protocol) << 32
    }
}
