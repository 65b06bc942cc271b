# SPDX-License-Identifier: Apache-2.0
"""The buffer of waiting frames: frames for the host leave whole and in order; a frame without room is counted."""

import random
import struct

import cocotb
from bench import Receiver, beats, packets, start
from cocotb.triggers import FallingEdge, RisingEdge


async def runs(dut, taken, heeds):
    """Frames come in every clock, or when there is room if `heeds`; of each something is said 20 clocks later."""
    await start(dut, give_i=0, said_i=0, ready_i=0)
    draw, receiver = random.Random(3), Receiver()
    frames = packets(200, 4, 300)
    reasons = [draw.choice([0, 0, 4, 9]) for _ in frames]
    coming = [(beat, number) for number, frame in enumerate(frames) for beat in beats(frame, draw)]
    due, clock, quiet = [], 0, 0
    while quiet < 400:
        clock += 1
        # The room that is reported is valid for the next clock.
        await FallingEdge(dut.clk_i)
        gives = bool(coming) and (not heeds or bool(dut.room_o.value)) and len(due) < 12
        dut.give_i.value = int(gives)
        if gives:
            (data, keep, last), number = coming.pop(0)
            dut.data_i.value, dut.keep_i.value, dut.last_i.value = data, keep, last
            if last:
                due.append((clock + 20, number))
        says = bool(due) and due[0][0] <= clock
        dut.said_i.value = int(says)
        if says:
            dut.reason_i.value, dut.time_i.value = reasons[due[0][1]], due[0][1]
        dut.ready_i.value = int(draw.random() < taken)
        await RisingEdge(dut.clk_i)
        if says and dut.said_ready_o.value:
            due.pop(0)
        quiet = quiet + 1 if not coming and not due and not dut.valid_o.value else 0
        if dut.valid_o.value and dut.ready_i.value:
            receiver.beat(dut.data_o.value, dut.keep_o.value, dut.last_o.value)
    numbers = []
    for packet in receiver.packets:
        magic, version, reason, length, number = struct.unpack(">HBBIQ", packet[:16])
        assert (magic, version, length) == (0x7467, 1, len(packet) - 64)
        assert (reason, packet[64:]) == (reasons[number], frames[number]), f"frame {number}"
        numbers.append(number)
    wanted = [number for number, reason in enumerate(reasons) if reason]
    assert numbers == sorted(numbers) and set(numbers) <= set(wanted)
    assert int(dut.dropped_o.value) == len(wanted) - len(numbers)
    return len(wanted) - len(numbers)


@cocotb.test()
async def a_stream_that_waits_loses_nothing(dut):
    assert await runs(dut, 0.3, True) == 0


@cocotb.test()
async def a_stream_that_does_not_wait_is_counted(dut):
    assert await runs(dut, 0.3, False) > 0
