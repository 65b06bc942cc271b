#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links in user space, for kernels without these link types.

record-sample.sh needs 802.1Q and QinQ sub-interfaces and GRE, IPIP and 6in4 tunnels. Small kernels leave
these options out, so this script implements each of them with a TAP or TUN device. It runs in the
foreground, inside the network namespace of its device, until killed.

  soft_link.py vlan DEVICE --wire IFACE --tags 0x88a8:200,0x8100:30
  soft_link.py tunnel DEVICE --kind gre|ipip|6in4 --local ADDRESS --remote ADDRESS
"""

import argparse
import fcntl
import select
import socket
import struct

IFF_TUN, IFF_TAP, IFF_NO_PI, TUNSETIFF = 0x0001, 0x0002, 0x1000, 0x400454CA
ETH_P_ALL = 0x0003
PACKET_OUTGOING = 4
SOL_PACKET, PACKET_AUXDATA = 263, 8
TP_STATUS_VLAN_VALID, TP_STATUS_VLAN_TPID_VALID = 1 << 4, 1 << 6
PROTOCOL_NUMBERS = {"gre": 47, "ipip": 4, "6in4": 41}


def open_device(name: str, mode: int):
    """Makes (or attaches to) the TUN or TAP device `name`."""
    device = open("/dev/net/tun", "r+b", buffering=0)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), mode | IFF_NO_PI))
    return device


def received_tag(control) -> bytes:
    """The outermost tag, which the kernel strips from a received frame and reports as metadata."""
    for level, kind, payload in control:
        if level == SOL_PACKET and kind == PACKET_AUXDATA:
            status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", payload[:20])
            if status & TP_STATUS_VLAN_VALID:
                return struct.pack("!HH", tpid if status & TP_STATUS_VLAN_TPID_VALID else 0x8100, tci)
    return b""


def run_vlan(device, wire: str, tags: bytes) -> None:
    """Connects the TAP to the wire: adds tags to outgoing frames, and filters and untags incoming ones."""
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    port.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    port.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    port.bind((wire, ETH_P_ALL))
    while True:
        ready, _, _ = select.select([device, port], [], [])
        if device in ready:
            frame = device.read(2048)
            port.send(frame[:12] + tags + frame[12:])
        if port in ready:
            frame, control, _, address = port.recvmsg(2048, 256)
            whole = frame[:12] + received_tag(control) + frame[12:]
            end = 12 + len(tags)
            untagged_type = whole[end : end + 2] not in (b"\x81\x00", b"\x88\xa8")
            if address[2] != PACKET_OUTGOING and whole[12:end] == tags and untagged_type:
                device.write(whole[:12] + whole[end:])


def run_tunnel(device, kind: str, local: str, remote: str) -> None:
    """Carries the TUN's packets in IPv4: with a GRE header (RFC 2784), or bare."""
    outer = socket.socket(socket.AF_INET, socket.SOCK_RAW, PROTOCOL_NUMBERS[kind])
    outer.bind((local, 0))
    outer.connect((remote, 0))
    while True:
        ready, _, _ = select.select([device, outer], [], [])
        if device in ready:
            packet = device.read(2048)
            ethertype = 0x0800 if packet[0] >> 4 == 4 else 0x86DD
            outer.send((struct.pack("!HH", 0, ethertype) if kind == "gre" else b"") + packet)
        if outer in ready:
            packet = outer.recv(2048)
            header_bytes = 4 * (packet[0] & 15) + (4 if kind == "gre" else 0)
            device.write(packet[header_bytes:])


def parse_tags(text: str) -> bytes:
    pairs = (tag.split(":") for tag in text.split(","))
    return b"".join(struct.pack("!HH", int(tpid, 0), int(vlan)) for tpid, vlan in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="link", required=True)
    vlan = kinds.add_parser("vlan")
    vlan.add_argument("device")
    vlan.add_argument("--wire", required=True)
    vlan.add_argument("--tags", required=True, type=parse_tags)
    tunnel = kinds.add_parser("tunnel")
    tunnel.add_argument("device")
    tunnel.add_argument("--kind", required=True, choices=PROTOCOL_NUMBERS)
    tunnel.add_argument("--local", required=True)
    tunnel.add_argument("--remote", required=True)
    args = parser.parse_args()
    if args.link == "vlan":
        run_vlan(open_device(args.device, IFF_TAP), args.wire, args.tags)
    else:
        run_tunnel(open_device(args.device, IFF_TUN), args.kind, args.local, args.remote)


if __name__ == "__main__":
    main()
