# SPDX-License-Identifier: Apache-2.0
"""The hash of keys against its definition: bit i is the parity of the key under the seed from bit i."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

LATENCY = 4


def toeplitz(key, seed, key_bits, hash_bits):
    mask = (1 << key_bits) - 1
    bits = ((key & (seed >> i) & mask).bit_count() & 1 for i in range(hash_bits))
    return sum(bit << i for i, bit in enumerate(bits))


@cocotb.test()
async def gives_the_hash_of_a_key_in_every_clock(dut):
    key_bits, hash_bits = len(dut.key_i), len(dut.hash_o)
    draw = random.Random(1)
    seed = draw.getrandbits(key_bits + hash_bits - 1)
    dut.seed_i.value = seed
    cocotb.start_soon(Clock(dut.clk_i, 10, units="ns").start())
    # Single bits first: each shows one place of the seed.
    keys = [1 << i for i in range(key_bits)] + [draw.getrandbits(key_bits) for _ in range(500)]
    expected = []
    for at, key in enumerate(keys + [0] * (LATENCY + 1)):
        dut.key_i.value = key
        expected.append(toeplitz(key, seed, key_bits, hash_bits))
        await RisingEdge(dut.clk_i)
        # Before the edge, the output is that of the key LATENCY edges ago.
        if at >= LATENCY:
            found = int(dut.hash_o.value)
            assert found == expected[at - LATENCY], f"key {at - LATENCY}: {found:#x}"
