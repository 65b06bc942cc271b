# SPDX-License-Identifier: Apache-2.0
"""The table that gives the stage of a key: compared with its rules, packet by packet, and with random placement."""

import random

import cocotb
from bench import start
from cocotb.triggers import RisingEdge

LATENCY, GAP = 4, 3
IDLE, PACKET, EPOCH, FLUSH = 0, 1, 4, 5
ENTRIES = 64
CELL = [(EPOCH, 0), *[(IDLE, 0)] * GAP]


LAST_NUMBER = 7

# The content of the memory: the number of the cell of an entry's last packet, and its stage. Reset
# clears nothing.
entries = {}


class Rules:
    """What the module's head says, packet by packet."""

    def __init__(self, stages):
        self.stages, self.number, self.turn, self.next = stages, LAST_NUMBER, 0, 0
        self.begin_cell()

    def begin_cell(self):
        self.last, self.number = self.number, self.number % LAST_NUMBER + 1
        self.counts, self.full = [0] * self.stages, [False] * self.stages

    def known(self, entry):
        number, stage = entries.get(entry, (0, None))
        return stage % self.stages if number in (self.number, self.last) else None

    def take(self, entry):
        known = self.known(entry)
        stage = self.next if known is None else known
        if entries.get(entry, (0, None))[0] != self.number:
            if known is None:
                self.turn = self.next
            turns = [(self.turn + i) % self.stages for i in range(1, self.stages + 1)]
            self.next = next((turn for turn in turns if not self.full[turn]), turns[0])
            # Which stages have too many is known one entry late.
            most = 1 + sum(self.counts) // self.stages
            self.full = [count > most for count in self.counts]
            self.counts[stage] += 1
        entries[entry] = self.number, stage
        return stage


async def runs(dut, stages, ops):
    """Gives the table an op a clock, and compares stages with the rules. Returns the entries of each stage, by cell."""
    await start(dut, kind_i=IDLE, entry_i=0, stage_mask_i=stages - 1)
    rules, expected, counts = Rules(stages), [], []
    for kind, entry in [*CELL, *ops, *[(IDLE, 0)] * (LATENCY + 1)]:
        dut.kind_i.value, dut.entry_i.value = kind, entry
        stage = None
        if kind == PACKET:
            stage = rules.take(entry)
        elif kind == FLUSH:
            stage = rules.known(entry)
        elif kind == EPOCH and expected:
            counts.append(rules.counts)
            rules.begin_cell()
        expected.append(stage)
        await RisingEdge(dut.clk_i)
        at = len(expected) - 1 - LATENCY
        if at >= 0 and expected[at] is not None:
            found = int(dut.stage_o.value)
            assert found == expected[at], f"op {at}: stage {found}, not {expected[at]}"
    return counts + [rules.counts]


def cells(draw, entries, cells_of_run=12, packets=300):
    """Cells of packets of these entries, with idle places, flushes, and trains of one entry."""
    for _ in range(cells_of_run):
        for _ in range(packets):
            kind = draw.choices([IDLE, PACKET, FLUSH], [1, 6, 1])[0]
            entry = draw.choice(entries)
            for _ in range(draw.choice([1, 1, 1, 2, 5]) if kind == PACKET else 1):
                yield kind, entry
        yield from CELL


@cocotb.test()
async def an_entry_keeps_its_stage_for_two_cells(dut):
    for stages in (4, 2):
        draw = random.Random(stages)
        # With few entries, packets of one entry meet within the forwards; in most cells many
        # entries are new.
        await runs(dut, stages, cells(draw, range(3)))
        await runs(dut, stages, cells(draw, range(ENTRIES), packets=40))


@cocotb.test()
async def an_entry_of_seven_cells_ago_looks_young(dut):
    for rest in range(1, 10):
        first = [(PACKET, entry) for entry in range(8)]
        await runs(dut, 4, first + CELL * rest + [(PACKET, 20), (PACKET, 3), (PACKET, 20)])


@cocotb.test()
async def stages_are_even_in_every_cell(dut):
    draw = random.Random(9)
    for counts in await runs(dut, 4, cells(draw, range(ENTRIES), packets=200)):
        assert max(counts) - min(counts) <= 6, counts
