# SPDX-License-Identifier: Apache-2.0
"""The memory: a written lane is read a clock later; the other lanes keep their values, also while one is written."""

import random

import cocotb
from bench import start
from cocotb.triggers import RisingEdge

LANES, BITS, ROWS = 4, 6, 16


@cocotb.test()
async def lanes_that_are_not_written_read_as_they_are(dut):
    await start(dut, write_i=0, read_addr_i=0)
    draw, rows, expected = random.Random(6), [[None] * LANES for _ in range(ROWS)], None
    for _ in range(3_000):
        write, at, read = draw.getrandbits(LANES), draw.randrange(ROWS), draw.randrange(ROWS)
        data = [draw.getrandbits(BITS) for _ in range(LANES)]
        dut.write_i.value, dut.write_addr_i.value, dut.read_addr_i.value = write, at, read
        dut.write_data_i.value = sum(value << (BITS * lane) for lane, value in enumerate(data))
        await RisingEdge(dut.clk_i)
        found = dut.read_data_o.value
        for lane, value in enumerate(expected or []):
            if value is not None:
                assert int(found) >> (BITS * lane) & ((1 << BITS) - 1) == value
        # A lane that is written in this clock may read as anything.
        expected = [None if at == read and write >> lane & 1 else rows[read][lane] for lane in range(LANES)]
        for lane in range(LANES):
            if write >> lane & 1:
                rows[at][lane] = data[lane]
