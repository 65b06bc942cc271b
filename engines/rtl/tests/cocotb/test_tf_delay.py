# SPDX-License-Identifier: Apache-2.0
"""The delay: words leave a fixed number of clocks later."""

import random

import cocotb
from bench import start
from cocotb.triggers import RisingEdge

CLOCKS = 11


@cocotb.test()
async def words_leave_so_many_clocks_later(dut):
    await start(dut, d_i=0)
    draw = random.Random(7)
    words = [draw.getrandbits(len(dut.d_i)) for _ in range(200)]
    for at, word in enumerate(words):
        dut.d_i.value = word
        await RisingEdge(dut.clk_i)
        # Before the edge, the output is that of the word CLOCKS edges ago.
        if at >= CLOCKS:
            assert int(dut.q_o.value) == words[at - CLOCKS], at
