# SPDX-License-Identifier: Apache-2.0
"""The egress: messages in the wire form, at any pace of the receiver."""

import random
import struct

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

IDLE, RECORD, EPOCH = 0, 2, 4
ENGINE_ID = 0x01020304
# Fields of state_t in tf_record_pkg, highest bits first.
STATE = [1, 28, 36, 30, 30, 16, 16, 12, 8, 8, 8, 1]


def state(values):
    body = 0
    for bits, value in zip(STATE, values):
        body = body << bits | value
    return body


def epoch(parity, start_ns):
    # place_t above packet_t of 74 bits: the parity of the cell is above 2 bits of age and one bit
    # for the turn of a period.
    return parity << (74 + 3) | start_ns


async def reset(dut):
    cocotb.start_soon(Clock(dut.clk_i, 10, units="ns").start())
    for name in ("kind_i", "why_i", "key_i", "body_i", "taken_i", "ready_i", "packets_i", "bytes_i"):
        getattr(dut, name).value = 0
    dut.engine_id_i.value = ENGINE_ID
    dut.rst_ni.value = 0
    for _ in range(5):
        await RisingEdge(dut.clk_i)
    dut.rst_ni.value = 1


async def receive(dut, pace, messages):
    draw, message = random.Random(2), b""
    while True:
        dut.ready_i.value = int(draw.random() < pace)
        await RisingEdge(dut.clk_i)
        if dut.valid_o.value and dut.ready_i.value:
            keep, data = int(dut.keep_o.value), int(dut.data_o.value)
            message += data.to_bytes(64, "little")[: keep.bit_count()]
            if dut.last_o.value:
                messages.append(message)
                message = b""


async def runs(dut, pace):
    await reset(dut)
    messages = []
    receiver = cocotb.start_soon(receive(dut, pace, messages))
    start_ns, latency, draw = 1_700_000_000_000_000_000, 17, random.Random(3)
    # The content of a place when it leaves, after its clocks in the line.
    line, sent = [None] * latency, []
    tokens = [(EPOCH, epoch(1, start_ns), 0)]
    for n in range(300):
        values = [1, n + 1, 1000 + n, n, n + 5, 40, 1500, 0x13, 60, 64, 8, n & 1]
        tokens.append((RECORD, state(values), draw.getrandbits(104)))
        sent.append((values, tokens[-1][2]))
    tokens.append((EPOCH, epoch(0, start_ns + 10**9), 0))
    while tokens or any(line):
        token = None
        if tokens and dut.room_o.value and draw.random() < 0.7:
            token = tokens.pop(0)
        line.append(token)
        dut.taken_i.value = int(token is not None)
        leaves = line.pop(0)
        dut.kind_i.value, dut.body_i.value, dut.key_i.value = leaves or (IDLE, 0, 0)
        await RisingEdge(dut.clk_i)
    dut.kind_i.value = IDLE
    while len(messages) < len(sent) + 2:
        await RisingEdge(dut.clk_i)
    receiver.kill()

    kinds = [message[3] for message in messages]
    assert kinds == [4] + [1] * len(sent) + [4], kinds
    for number, (message, (values, key)) in enumerate(zip(messages[1:-1], sent)):
        magic, version, _, length, _, engine, sequence, watermark = struct.unpack(">HBBIQIIQ", message[:32])
        assert (magic, version, length, engine) == (0x7466, 1, len(message), ENGINE_ID)
        assert (sequence, watermark) == (number, 0)
        fields = struct.unpack(">QQQQIIHBBBBH", message[32:80])
        _, packets, octets, first, last, least, most, flags, min_ttl, max_ttl, tos, syn = values
        marks = (5 if syn else 0) | (0x20 if flags & 1 else 0) | (0x80 if flags & 4 else 0)
        expected = (packets, octets, start_ns + first, start_ns + last, least, most, flags, min_ttl, max_ttl, tos, marks, 0)
        assert fields == expected, f"record {number}: {fields}"
        assert message[80:96] == key.to_bytes(16, "little")
    assert struct.unpack(">Q", messages[-1][24:32]) == (start_ns,)


@cocotb.test()
async def a_fast_receiver_gets_every_record(dut):
    await runs(dut, 1.0)


@cocotb.test()
async def a_slow_receiver_gets_every_record(dut):
    await runs(dut, 0.2)
