# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of modules: clock, reset, and packets as beats of an AXI-Stream of 512 bits."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge


async def start(dut, **inputs):
    """Starts the clock, and resets a module with these inputs."""
    cocotb.start_soon(Clock(dut.clk_i, 10, units="ns").start())
    for name, value in inputs.items():
        getattr(dut, name).value = value
    if hasattr(dut, "rst_ni"):
        dut.rst_ni.value = 0
        for _ in range(5):
            await RisingEdge(dut.clk_i)
        dut.rst_ni.value = 1
    await RisingEdge(dut.clk_i)


def beats(packet, draw):
    """Beats of a packet: data, keep, last. Bytes behind its end are anything."""
    for at in range(0, len(packet), 64):
        part = packet[at : at + 64]
        data = int.from_bytes(part + draw.randbytes(64 - len(part)), "little")
        yield data, (1 << len(part)) - 1, int(at + 64 >= len(packet))


def packets(count, seed, longest):
    draw = random.Random(seed)
    return [draw.randbytes(draw.choice([1, 50, 51, 64, 65, 114, 128, draw.randint(1, longest)])) for _ in range(count)]


class Receiver:
    """Puts beats together to packets."""

    def __init__(self):
        self.packets, self.bytes = [], b""

    def beat(self, data, keep, last):
        self.bytes += int(data).to_bytes(64, "little")[: int(keep).bit_count()]
        if last:
            self.packets.append(self.bytes)
            self.bytes = b""
