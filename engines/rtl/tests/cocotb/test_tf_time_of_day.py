# SPDX-License-Identifier: Apache-2.0
"""A PTP time of day becomes nanoseconds, up to the latest time that a record can hold."""

import random

import cocotb
from bench import start
from cocotb.triggers import RisingEdge

LATENCY = 7


@cocotb.test()
async def seconds_and_nanoseconds_add_up(dut):
    await start(dut, time_of_day_i=0)
    draw = random.Random(8)
    last_s = (2**64 - 1) // 10**9 - 1
    times = [(draw.choice([0, 1, last_s, draw.randint(0, last_s)]), draw.choice([0, 999_999_999, draw.randrange(10**9)]))
             for _ in range(500)]
    for at, (seconds, ns) in enumerate(times):
        dut.time_of_day_i.value = seconds << 48 | ns << 16 | draw.getrandbits(16)
        await RisingEdge(dut.clk_i)
        if at >= LATENCY:
            seconds, ns = times[at - LATENCY]
            assert int(dut.time_o.value) == seconds * 10**9 + ns
