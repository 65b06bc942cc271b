#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes samples/cases/*.pcap. Each has a few frames, which test one question that docs/semantics.md answers.

The answers (samples/cases/*.toml) are written by hand from the frames, not by this script. Transport
checksums are zero, because TurboFlow does not check them.

  scripts/make_cases.py [DIRECTORY]        default: samples/cases beside this script's folder
"""

import ipaddress
import struct
import sys
from pathlib import Path

# Addresses: A asks and B answers; C and D are the outer ends of a tunnel. From the documentation
# ranges of RFC 5737 and 3849.
A4, B4, C4, D4 = "192.0.2.1", "198.51.100.2", "203.0.113.3", "203.0.113.4"
A6, B6, C6, D6 = "2001:db8::a", "2001:db8::b", "2001:db8:f::c", "2001:db8:f::d"
ICMP, IPIP, TCP, UDP, DCCP, V6_IN_IP, ROUTING, FRAGMENT = 1, 4, 6, 17, 33, 41, 43, 44
GRE, ESP, AH, ICMP6, NO_NEXT, DESTINATION_OPTIONS = 47, 50, 51, 58, 59, 60
L2TP3, SCTP, MOBILITY, UDP_LITE = 115, 132, 135, 136
IPV4, ARP, TEB, VLAN, IPV6, PPPOE_DISCOVERY, PPPOE, MPLS, QINQ, OLD_QINQ = (
    0x0800, 0x0806, 0x6558, 0x8100, 0x86DD, 0x8863, 0x8864, 0x8847, 0x88A8, 0x9100,
)  # fmt: skip
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
LINK_ETHERNET = 1


# --- layers, innermost first ----------------------------------------------------------------------


def ones_complement_sum(octets: bytes) -> int:
    total = sum(struct.unpack(f"!{(len(octets) + 1) // 2}H", octets + b"\0" * (len(octets) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def address(text: str) -> bytes:
    return ipaddress.ip_address(text).packed


def filler(count: int) -> bytes:
    return bytes(ord("a") + i % 26 for i in range(count))


def udp(sport: int, dport: int, payload: bytes) -> bytes:
    return struct.pack("!HHHH", sport, dport, 8 + len(payload), 0) + payload


def tcp(sport: int, dport: int, flags: int, payload: bytes = b"", sequence: int = 1) -> bytes:
    return struct.pack("!HHIIBBHHH", sport, dport, sequence, 0, 5 << 4, flags, 8192, 0, 0) + payload


def icmp(kind: int, code: int, rest: bytes) -> bytes:
    checksum = ones_complement_sum(struct.pack("!BBH", kind, code, 0) + rest)
    return struct.pack("!BBH", kind, code, checksum) + rest


def icmp6(src: str, dst: str, kind: int, code: int, rest: bytes) -> bytes:
    message = struct.pack("!BBH", kind, code, 0) + rest
    pseudo = address(src) + address(dst) + struct.pack("!II", len(message), ICMP6)
    return message[:2] + struct.pack("!H", ones_complement_sum(pseudo + message)) + rest


def ip4(src, dst, protocol, payload, *, ident=1, offset=0, more=False, options=b"", **override) -> bytes:
    """An IPv4 packet. `offset` is in bytes; `override` may have first_byte and total_length."""
    header_bytes = 20 + len(options)
    header = bytearray(
        struct.pack(
            "!BBHHHBBH4s4s",
            override.get("first_byte", 0x40 | header_bytes // 4), 0,
            override.get("total_length", header_bytes + len(payload)), ident,
            (0x2000 if more else 0) | offset // 8, 64, protocol, 0, address(src), address(dst),
        ) + options
    )  # fmt: skip
    header[10:12] = struct.pack("!H", ones_complement_sum(bytes(header)))
    return bytes(header) + payload


def ip6(src, dst, next_header, payload, *, payload_length=None) -> bytes:
    length = len(payload) if payload_length is None else payload_length
    return struct.pack("!IHBB", 6 << 28, length, next_header, 64) + address(src) + address(dst) + payload


def ip4_fragments(src, dst, protocol, datagram, ident, step=1480) -> list[bytes]:
    return [
        ip4(src, dst, protocol, datagram[at : at + step], ident=ident, offset=at, more=at + step < len(datagram))
        for at in range(0, len(datagram), step)
    ]


def fragment6(next_header, ident, offset, more, payload) -> bytes:
    return struct.pack("!BBHI", next_header, 0, offset | more, ident) + payload


def ip6_fragments(src, dst, next_header, datagram, ident, step=1448) -> list[bytes]:
    return [
        ip6(src, dst, FRAGMENT, fragment6(next_header, ident, at, at + step < len(datagram), datagram[at : at + step]))
        for at in range(0, len(datagram), step)
    ]


def options6(next_header: int, payload: bytes, option: bytes = b"\x01\x04\0\0\0\0") -> bytes:
    """A hop-by-hop or destination options header; `option` fills it to a multiple of 8 bytes."""
    return bytes([next_header, (len(option) + 2) // 8 - 1]) + option + payload


def routing6(next_header: int, segments: list[str], kind: int, left: int, payload: bytes) -> bytes:
    extra = struct.pack("!BBH", len(segments) - 1, 0, 0) if kind == 4 else b"\0\0\0\0"
    listed = b"".join(map(address, segments))
    return struct.pack("!BBBB", next_header, 2 * len(segments), kind, left) + extra + listed + payload


def authentication(next_header: int, payload: bytes) -> bytes:
    return struct.pack("!BBHII", next_header, 4, 0, 0x100, 1) + b"\xaa" * 12 + payload


def gre(protocol: int, payload: bytes, *, checksum=False, key=None, sequence=None, version=0) -> bytes:
    flags = 0x8000 * checksum | 0x2000 * (key is not None) | 0x1000 * (sequence is not None) | version
    fields = [b"\0\0\0\0"] * checksum + [struct.pack("!I", v) for v in (key, sequence) if v is not None]
    return struct.pack("!HH", flags, protocol) + b"".join(fields) + payload


def vxlan(vni: int, frame: bytes) -> bytes:
    return struct.pack("!II", 0x0800_0000, vni << 8) + frame


def geneve(vni: int, protocol: int, payload: bytes, options: bytes = b"") -> bytes:
    return struct.pack("!BBHI", len(options) // 4, 0, protocol, vni << 8) + options + payload


def gtpu(teid: int, payload: bytes, *, kind=255, extension=False) -> bytes:
    # With an extension: sequence number, N-PDU number, next type 0x85; then one PDU session container.
    extra = b"\0\x01\0\x85" + b"\x01\0\x09\0" if extension else b""
    return struct.pack("!BBHI", 0x34 if extension else 0x30, kind, len(extra) + len(payload), teid) + extra + payload


def l2tp2(payload: bytes, *, control=False) -> bytes:
    """L2TPv2 (RFC 2661). Control messages have length and sequence numbers, these data messages only a length."""
    if control:
        return struct.pack("!HHHHHH", 0xC802, 12 + len(payload), 7, 0, 0, 0) + payload
    return struct.pack("!HHHH", 0x4002, 10 + len(payload), 7, 9) + b"\xff\x03" + payload


def ppp(protocol: int, payload: bytes) -> bytes:
    return struct.pack("!H", protocol) + payload


def pppoe(payload: bytes, code=0) -> bytes:
    return struct.pack("!BBHH", 0x11, code, 0x1234, len(payload)) + payload


def mpls(labels: list[int], payload: bytes) -> bytes:
    last = len(labels) - 1
    return b"".join(struct.pack("!I", v << 12 | (i == last) << 8 | 64) for i, v in enumerate(labels)) + payload


def tag(vlan: int, ethertype: int, payload: bytes) -> bytes:
    return struct.pack("!HH", vlan, ethertype) + payload


def ethernet(ethertype: int, payload: bytes) -> bytes:
    return bytes.fromhex("00005e005302" "00005e005301") + struct.pack("!H", ethertype) + payload


def eth4(*packets: bytes) -> list[bytes]:
    return [ethernet(IPV4, packet) for packet in packets]


def eth6(*packets: bytes) -> list[bytes]:
    return [ethernet(IPV6, packet) for packet in packets]


def both_ways(protocol: int, there: bytes, back: bytes) -> list[bytes]:
    return [ip4(A4, B4, protocol, there), ip4(B4, A4, protocol, back)]


def arp() -> bytes:
    return struct.pack("!HHBBH", 1, IPV4, 6, 4, 1) + b"\0\0\x5e\0\x53\x01" + address(A4) + b"\0" * 6 + address(B4)


# The inner packets of the tunnels: IPv4 UDP of 48 and 58 bytes, IPv6 UDP of 68.
INNER4 = both_ways(UDP, udp(4000, 4053, filler(20)), udp(4053, 4000, filler(30)))
INNER6 = ip6(A6, B6, UDP, udp(4000, 4053, filler(20)))


def outer_udp(sport: int, dport: int, payload: bytes) -> bytes:
    return ip4(C4, D4, UDP, udp(sport, dport, payload))


# --- the cases ------------------------------------------------------------------------------------


def fragment_cases() -> dict:
    four = ip4_fragments(A4, B4, UDP, udp(5000, 6000, filler(4000)), ident=77)
    other = ip4_fragments(A4, B4, UDP, udp(5001, 6000, filler(2000)), ident=78)
    six = ip6_fragments(A6, B6, UDP, udp(5000, 6000, filler(4000)), ident=77)
    chained = udp(5000, 6000, filler(1600))
    first = ip6(A6, B6, 0, options6(FRAGMENT, fragment6(DESTINATION_OPTIONS, 9, 0, True, options6(UDP, chained[:1000]))))
    later = ip6(A6, B6, 0, options6(FRAGMENT, fragment6(DESTINATION_OPTIONS, 9, 1008, False, chained[1000:])))
    return {
        "fragments4_in_order": eth4(*four),
        "fragments4_out_of_order": eth4(four[2], four[1], four[0]),
        "fragments4_interleaved": eth4(four[0], other[0], four[1], other[1], four[2]),
        "fragments4_first_missing": eth4(four[1], four[2]),
        "fragments4_icmp": eth4(*ip4_fragments(A4, B4, ICMP, icmp(8, 0, b"\0\1\0\1" + filler(3000)), ident=5)),
        "fragments6_in_order": eth6(*six),
        "fragments6_out_of_order": eth6(six[1], six[2], six[0]),
        "fragments6_after_options": eth6(first, later),
        "fragment6_atomic": eth6(ip6(A6, B6, FRAGMENT, fragment6(UDP, 3, 0, False, udp(5000, 6000, filler(10))))),
    }


def header_cases() -> dict:
    segment = tcp(1000, 80, SYN)
    jumbo = options6(UDP, udp(5000, 6000, filler(40)), b"\xc2\x04" + struct.pack("!I", 70_000))
    return {
        "options4": eth4(ip4(A4, B4, UDP, udp(5000, 6000, filler(12)), options=b"\x94\x04\0\0")),
        "hop_by_hop6": eth6(ip6(A6, B6, 0, options6(TCP, segment))),
        "routing6": eth6(ip6(A6, B6, ROUTING, routing6(TCP, [D6], 0, 1, segment))),
        "segment_routing6": eth6(ip6(A6, B6, ROUTING, routing6(UDP, [D6, B6], 4, 1, udp(5000, 6000, filler(24))))),
        "destination_options6": eth6(ip6(A6, B6, DESTINATION_OPTIONS, options6(TCP, segment))),
        "every_extension6": eth6(
            ip6(A6, B6, 0, options6(DESTINATION_OPTIONS, options6(ROUTING, routing6(AH, [D6], 0, 1,
                authentication(DESTINATION_OPTIONS, options6(TCP, segment))))))
        ),
        "jumbo6": [(ethernet(IPV6, ip6(A6, B6, 0, jumbo, payload_length=0)), 14 + 40 + 70_000)],
        "no_next_header6": eth6(ip6(A6, B6, NO_NEXT, b"")),
        "ah4": eth4(ip4(A4, B4, AH, authentication(TCP, segment))),
        "ah6": eth6(ip6(A6, B6, AH, authentication(TCP, segment))),
        "esp4": eth4(ip4(A4, B4, ESP, struct.pack("!II", 0x200, 1) + filler(40))),
        "esp6": eth6(ip6(A6, B6, ESP, struct.pack("!II", 0x200, 1) + filler(40))),
        "mobility6": eth6(ip6(A6, B6, MOBILITY, struct.pack("!BBBBHH", NO_NEXT, 0, 0, 0, 0, 0))),
    }  # fmt: skip


def tunnel_cases() -> dict:
    there, back = INNER4
    origin = struct.pack("!BBHI", 0, 0, 0xFFFF ^ 4096, 0xFFFFFFFF ^ 0xC0000201)
    return {
        "gre": eth4(ip4(C4, D4, GRE, gre(IPV4, there)), ip4(D4, C4, GRE, gre(IPV4, back))),
        "gre_key": eth4(ip4(C4, D4, GRE, gre(IPV4, there, key=42)), ip4(C4, D4, GRE, gre(IPV6, INNER6, checksum=True, key=42, sequence=1))),
        "gre_ethernet": eth4(ip4(C4, D4, GRE, gre(TEB, ethernet(IPV4, there))), ip4(C4, D4, GRE, gre(TEB, ethernet(VLAN, tag(5, IPV6, INNER6))))),
        "gre_other": eth4(ip4(C4, D4, GRE, gre(0x6559, filler(30))), ip4(C4, D4, GRE, gre(0, b""))),
        "gre_over_ipv6": eth6(ip6(C6, D6, GRE, gre(IPV4, there))),
        "ipip": eth4(ip4(C4, D4, IPIP, there), ip4(D4, C4, IPIP, back)),
        "six_in_four": eth4(ip4(C4, D4, V6_IN_IP, INNER6)),
        "four_in_six": eth6(ip6(C6, D6, IPIP, there)),
        "six_in_six": eth6(ip6(C6, D6, DESTINATION_OPTIONS, options6(V6_IN_IP, INNER6))),
        "nested": eth4(ip4(C4, D4, IPIP, ip4(D4, C4, GRE, gre(IPV4, outer_udp(50000, 4789, vxlan(7, ethernet(IPV4, there))))))),
        "vxlan": eth4(outer_udp(50000, 4789, vxlan(7, ethernet(IPV4, there))), outer_udp(50001, 4789, vxlan(7, ethernet(VLAN, tag(5, IPV6, INNER6))))),
        "vxlan_arp": eth4(outer_udp(50000, 4789, vxlan(7, ethernet(ARP, arp())))),
        "geneve": eth4(outer_udp(50000, 6081, geneve(9, TEB, ethernet(IPV4, there))), outer_udp(50001, 6081, geneve(9, IPV6, INNER6, options=b"\x01\x02\x80\x01\0\0\0\x07"))),
        "gtpu": eth4(outer_udp(2152, 2152, gtpu(11, there)), outer_udp(2152, 2152, gtpu(12, INNER6, extension=True))),
        "gtpu_echo": eth4(outer_udp(2152, 2152, gtpu(0, b"", kind=1))),
        "teredo": eth4(outer_udp(3544, 51000, INNER6), outer_udp(3544, 51000, origin + INNER6)),
        "l2tp": eth4(outer_udp(1701, 1701, l2tp2(ppp(0x21, there))), outer_udp(1701, 1701, l2tp2(ppp(0x57, INNER6)))),
        "l2tp_control": eth4(outer_udp(1701, 1701, l2tp2(b"\x80\x08\0\0\0\0\0\x01", control=True))),
        "icmp_error": eth4(ip4(D4, A4, ICMP, icmp(11, 0, b"\0\0\0\0" + there[:28]))),
    }  # fmt: skip


def link_cases() -> dict:
    there, back = INNER4
    snap = b"\xaa\xaa\x03\0\0\0" + struct.pack("!H", IPV4) + there
    return {
        "mpls_two": [ethernet(MPLS, mpls([100, 200], there)), ethernet(MPLS, mpls([100, 201], INNER6))],
        "vlan": [ethernet(VLAN, tag(10, IPV4, there)), ethernet(VLAN, tag(10, IPV6, INNER6))],
        "qinq": [ethernet(QINQ, tag(200, VLAN, tag(30, IPV4, there))), ethernet(QINQ, tag(200, VLAN, tag(30, ARP, arp())))],
        "old_qinq": [ethernet(OLD_QINQ, tag(200, VLAN, tag(30, IPV4, there)))],
        "vlan_mpls": [ethernet(VLAN, tag(10, MPLS, mpls([16], there)))],
        "pppoe": [
            ethernet(PPPOE, pppoe(ppp(0x21, there))), ethernet(PPPOE, pppoe(ppp(0x57, INNER6))),
            ethernet(PPPOE, pppoe(ppp(0xC021, b"\x09\x01\0\x08\0\0\0\0"))),
            ethernet(PPPOE_DISCOVERY, pppoe(b"\x01\x01\0\0", code=9)),
        ],
        "llc_snap": [ethernet(len(snap), snap)],
        "padding": [
            ethernet(IPV4, ip4(A4, B4, TCP, tcp(1000, 80, ACK))) + b"\0" * 6,
            ethernet(IPV4, ip4(A4, B4, UDP, udp(4000, 4053, b""))) + b"\0" * 18,
            ethernet(IPV4, ip4(A4, B4, UDP, b"")) + b"\x0f\xa0\x0f\xd5" + b"\0" * 22,
        ],
        "total_length_zero": [(ethernet(IPV4, ip4(A4, B4, TCP, tcp(1000, 80, PSH | ACK, filler(60)), total_length=0)), 14 + 20_000)],
    }  # fmt: skip


def transport_cases() -> dict:
    init = struct.pack("!HHII", 3000, 36412, 0, 0) + struct.pack("!BBHIIHHI", 1, 0, 20, 1, 65536, 1, 1, 1)
    answer = struct.pack("!HHII", 36412, 3000, 1, 0) + struct.pack("!BBHI", 11, 0, 4, 0)[:4]
    dccp = struct.pack("!HHBBHIII", 3001, 5001, 4, 0, 0, 1, 2, 0x64636370)
    lite = struct.pack("!HHHH", 3002, 7007, 8, 0) + filler(24)
    tcp_talk = [
        (A4, B4, tcp(1000, 80, SYN)), (B4, A4, tcp(80, 1000, SYN | ACK)), (A4, B4, tcp(1000, 80, ACK)),
        (A4, B4, tcp(1000, 80, PSH | ACK, filler(100))), (B4, A4, tcp(80, 1000, PSH | ACK, filler(1000))),
        (B4, A4, tcp(80, 1000, FIN | ACK)), (A4, B4, tcp(1000, 80, FIN | ACK)), (B4, A4, tcp(80, 1000, ACK)),
    ]  # fmt: skip
    echo = b"\0\1\0\1" + filler(56)
    return {
        "tcp": eth4(*(ip4(src, dst, TCP, segment) for src, dst, segment in tcp_talk)),
        "tcp_refused": eth4(ip4(A4, B4, TCP, tcp(1000, 81, SYN)), ip4(B4, A4, TCP, tcp(81, 1000, RST | ACK))),
        "sctp": eth4(*both_ways(SCTP, init, answer)),
        "udp_lite": eth4(ip4(A4, B4, UDP_LITE, lite)) + eth6(ip6(A6, B6, UDP_LITE, lite)),
        "dccp": eth4(ip4(A4, B4, DCCP, dccp)),
        "icmp": eth4(*both_ways(ICMP, icmp(8, 0, echo), icmp(0, 0, echo))),
        "icmp6": eth6(ip6(A6, B6, ICMP6, icmp6(A6, B6, 128, 0, echo)), ip6(B6, A6, ICMP6, icmp6(B6, A6, 129, 0, echo))),
        "ports_cut_off": [(ethernet(IPV4, ip4(A4, B4, UDP, udp(4000, 4053, filler(20))))[: 14 + 20 + 3], 14 + 48)],
        "port_zero": eth4(ip4(A4, A4, UDP, udp(0, 0, filler(1)))),
        "malformed": [
            ethernet(IPV4, ip4(A4, B4, UDP, udp(4000, 4053, b""), first_byte=0x55)),
            ethernet(IPV4, ip4(A4, B4, UDP, udp(4000, 4053, b""), first_byte=0x44)),
            ethernet(IPV4, ip4(A4, B4, UDP, udp(4000, 4053, b""), total_length=19)),
            (ethernet(IPV4, ip4(A4, B4, UDP, udp(4000, 4053, b"")))[: 14 + 19], 14 + 28),
            (ethernet(IPV6, INNER6)[: 14 + 39], 14 + 68),
            ethernet(IPV4, ip4(A4, B4, UDP, udp(4000, 4053, b""))),
        ],
        "non_ip": [ethernet(ARP, arp()), ethernet(0x88CC, bytes.fromhex("020704" "00005e005301" "04020531" "06020078" "0000")), ethernet(38, b"\x42\x42\x03" + b"\0" * 35)],
    }  # fmt: skip


# --- the files ------------------------------------------------------------------------------------


def write_pcap(path: Path, frames: list) -> None:
    """Writes classic pcap, one frame per millisecond. A frame may be paired with its length on the wire."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, LINK_ETHERNET))
        for index, frame in enumerate(frames):
            octets, wire_bytes = frame if isinstance(frame, tuple) else (frame, len(frame))
            file.write(struct.pack("<IIII", 1_600_000_000, 1000 * index, len(octets), wire_bytes) + octets)


def main() -> None:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "samples/cases"
    directory.mkdir(parents=True, exist_ok=True)
    for group in (fragment_cases, header_cases, tunnel_cases, link_cases, transport_cases):
        for name, frames in group().items():
            write_pcap(directory / f"{name}.pcap", frames)


if __name__ == "__main__":
    main()
