# SPDX-License-Identifier: Apache-2.0
"""The parser: frames of every kind, with gaps between beats and a receiver that makes it wait."""

import random
import struct

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

# Fields of parsed_t in tf_frame_pkg, lowest bits first.
FIELDS = [("reason", 4), ("last_byte", 16), ("is_longer", 1), ("is_v6", 1), ("length", 17), ("tcp_flags", 12),
          ("ttl", 8), ("tos", 8), ("key", 296)]
NONE, TAGS, ETHER_TYPE, IP_HEADER, DEEP = 0, 3, 4, 6, 9


def ethernet(announced, payload, tags=()):
    for tag in reversed(tags):
        payload, announced = struct.pack(">HH", 5, announced) + payload, tag
    return bytes(12) + struct.pack(">H", announced) + payload


def ipv4(protocol, payload, options=b"", fragment=0):
    length = 20 + len(options) + len(payload)
    head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, 8, length, 1, fragment, 64, protocol, 0)
    return head + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + options + payload


def ipv6(next_header, payload):
    head = struct.pack(">IHBB", 6 << 28 | 0x28 << 20, len(payload), next_header, 63)
    return head + bytes(range(32)) + payload


def tcp(flags=0x12, rest=b""):
    return struct.pack(">HHIIHHHH", 1000, 443, 1, 2, 0x5000 | flags, 100, 0, 0) + rest


def expected(frame, reason=NONE, **fields):
    key = 0
    if reason == NONE:
        ports = struct.pack(">HH", *fields.pop("ports", (0, 0)))
        addresses = bytes(range(32)) if fields["is_v6"] else bytes([10, 0, 0, 1, 10, 0, 0, 2])
        key = int.from_bytes(addresses + ports + bytes([fields.pop("protocol")]), "little")
    return {"reason": reason, "last_byte": len(frame) - 1, **({"key": key, **fields} if reason == NONE else {})}


def cases():
    v4 = {"is_v6": 0, "is_longer": 0, "ttl": 64, "tos": 8}
    v6 = {"is_v6": 1, "is_longer": 0, "ttl": 63, "tos": 0x28}
    udp = struct.pack(">HHHH", 53, 4000, 8, 0)
    chain = bytes([43, 0]) + bytes(6) + bytes([60, 1]) + bytes(14) + bytes([44, 0]) + bytes(6)
    chain += bytes([6, 0, 0, 1]) + bytes(4) + tcp(0x18)
    deep = bytes([17, 7]) + bytes(62) + udp
    for frame, fields in [
        (ethernet(0x0800, ipv4(6, tcp())), {**v4, "protocol": 6, "ports": (1000, 443), "tcp_flags": 0x12, "length": 40}),
        (ethernet(0x0800, ipv4(17, udp), (0x8100,)) + bytes(9),
         {**v4, "protocol": 17, "ports": (53, 4000), "tcp_flags": 0, "length": 28}),
        (ethernet(0x0800, ipv4(6, tcp(1, bytes(900)), bytes(40)), (0x88a8, 0x8100)),
         {**v4, "protocol": 6, "ports": (1000, 443), "tcp_flags": 1, "length": 980}),
        (ethernet(0x0800, ipv4(132, udp)), {**v4, "protocol": 132, "ports": (53, 4000), "tcp_flags": 0, "length": 28}),
        (ethernet(0x0800, ipv4(17, udp, fragment=9)), {**v4, "protocol": 17, "tcp_flags": 0, "length": 28}),
        (ethernet(0x0800, ipv4(1, bytes(8))), {**v4, "protocol": 1, "tcp_flags": 0, "length": 28}),
        (ethernet(0x86dd, ipv6(6, tcp(0x011))), {**v6, "protocol": 6, "ports": (1000, 443), "tcp_flags": 0x11, "length": 60}),
        (ethernet(0x86dd, ipv6(0, chain), (0x8100, 0x8100)),
         {**v6, "protocol": 6, "ports": (1000, 443), "tcp_flags": 0x18, "length": 40 + len(chain)}),
    ]:
        yield frame, expected(frame, **fields)
    for frame, reason in [
        (ethernet(0x0806, bytes(46)), ETHER_TYPE),
        (ethernet(0x0800, ipv4(6, tcp()), (0x8100, 0x8100, 0x8100)), TAGS),
        (ethernet(0x0800, ipv4(6, tcp()))[:30], IP_HEADER),
        (ethernet(0x86dd, ipv6(60, deep)), DEEP),
    ]:
        yield frame, expected(frame, reason)


async def send(dut, frames, pace):
    draw = random.Random(4)
    for number, frame in enumerate(frames):
        for at in range(0, len(frame), 64):
            while draw.random() >= pace:
                await RisingEdge(dut.clk_i)
            beat = frame[at : at + 64]
            # After the end of a frame, bytes are random.
            dut.s_axis_tdata_i.value = int.from_bytes(beat + draw.randbytes(64 - len(beat)), "little")
            dut.s_axis_tkeep_i.value = (1 << len(beat)) - 1
            dut.s_axis_tlast_i.value = int(at + 64 >= len(frame))
            dut.s_axis_tuser_i.value = number if at == 0 else draw.getrandbits(64)
            dut.s_axis_tvalid_i.value = 1
            await RisingEdge(dut.clk_i)
            while not dut.s_axis_tready_o.value:
                await RisingEdge(dut.clk_i)
            dut.s_axis_tvalid_i.value = 0


def fields_of(parsed):
    fields = {}
    for name, bits in FIELDS:
        fields[name], parsed = parsed & ((1 << bits) - 1), parsed >> bits
    return fields


async def runs(dut, given, taken, rounds):
    cocotb.start_soon(Clock(dut.clk_i, 10, units="ns").start())
    for name in ("s_axis_tvalid_i", "s_axis_tbad_i", "ready_i", "s_axis_tlast_i"):
        getattr(dut, name).value = 0
    dut.rst_ni.value = 0
    for _ in range(5):
        await RisingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    draw, all_cases = random.Random(6), list(cases())
    chosen = all_cases + [draw.choice(all_cases) for _ in range(rounds)]
    cocotb.start_soon(send(dut, [frame for frame, _ in chosen], given))
    for number, (_, wanted) in enumerate(chosen):
        while True:
            dut.ready_i.value = int(draw.random() < taken)
            await RisingEdge(dut.clk_i)
            if dut.valid_o.value and dut.ready_i.value:
                break
        found = fields_of(int(dut.parsed_o.value))
        assert int(dut.time_o.value) == number
        assert {name: found[name] for name in wanted} == wanted, f"frame {number}"


@cocotb.test()
async def says_what_frames_are(dut):
    await runs(dut, 1.0, 1.0, 50)


@cocotb.test()
async def gaps_between_beats_change_nothing(dut):
    await runs(dut, 0.3, 1.0, 100)


@cocotb.test()
async def a_slow_receiver_loses_nothing(dut):
    await runs(dut, 1.0, 0.1, 200)
