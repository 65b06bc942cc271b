# SPDX-License-Identifier: Apache-2.0
"""The queue: entries leave in order, at any pace, up to one in every clock."""

import random

import cocotb
from bench import start
from cocotb.triggers import RisingEdge


async def runs(dut, put, taken, count=400):
    await start(dut, put_i=0, ready_i=0)
    depth, draw = 8, random.Random(5)
    sent, found, clocks = 0, [], 0
    while len(found) < count:
        # The sender must know the room: entries in the queue and at its output count.
        puts = sent < count and sent - len(found) < depth and draw.random() < put
        dut.put_i.value, dut.data_i.value = int(puts), sent & 0xFF
        dut.ready_i.value = int(draw.random() < taken)
        await RisingEdge(dut.clk_i)
        clocks += 1
        sent += puts
        if dut.valid_o.value and dut.ready_i.value:
            found.append(int(dut.data_o.value))
    assert found == [number & 0xFF for number in range(count)]
    return clocks


@cocotb.test()
async def gives_one_in_every_clock(dut):
    assert await runs(dut, 1.0, 1.0) <= 404


@cocotb.test()
async def keeps_the_order_at_any_pace(dut):
    await runs(dut, 0.5, 0.5)
    await runs(dut, 1.0, 0.2)
