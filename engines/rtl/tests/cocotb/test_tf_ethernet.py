# SPDX-License-Identifier: Apache-2.0
"""An Ethernet header is put in front of every packet, at any packet length and any pace on both sides."""

import random

import cocotb
from bench import Receiver, beats, packets, start
from cocotb.triggers import RisingEdge

HEADER = bytes(range(1, 15))


async def runs(dut, given, taken):
    await start(dut, s_axis_tvalid_i=0, m_axis_tready_i=0, header_i=int.from_bytes(HEADER, "little"))
    draw, receiver = random.Random(1), Receiver()
    sent = packets(150, 2, 400)
    queue = [beat for packet in sent for beat in beats(packet, draw)]
    offered = False
    while len(receiver.packets) < len(sent):
        offered = bool(queue) and (offered or draw.random() < given)
        dut.s_axis_tvalid_i.value = int(offered)
        if offered:
            dut.s_axis_tdata_i.value, dut.s_axis_tkeep_i.value, dut.s_axis_tlast_i.value = queue[0]
        dut.m_axis_tready_i.value = int(draw.random() < taken)
        await RisingEdge(dut.clk_i)
        if dut.m_axis_tvalid_o.value and dut.m_axis_tready_i.value:
            receiver.beat(dut.m_axis_tdata_o.value, dut.m_axis_tkeep_o.value, dut.m_axis_tlast_o.value)
        if offered and dut.s_axis_tready_o.value:
            queue.pop(0)
            offered = False
    assert receiver.packets == [HEADER + packet for packet in sent]


@cocotb.test()
async def at_full_pace(dut):
    await runs(dut, 1.0, 1.0)


@cocotb.test()
async def with_gaps_and_a_slow_receiver(dut):
    await runs(dut, 0.6, 0.4)
