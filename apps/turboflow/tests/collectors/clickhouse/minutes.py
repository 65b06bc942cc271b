# SPDX-License-Identifier: Apache-2.0
"""Checks which minutes count as complete if ticks are missing, runs are new, or records are lost. Uses small tables."""

import time

DAY = 86_400
SECOND_NS = 1_000_000_000
NOW = int(time.time())


class Runs:
    """Inserts records and ticks of runs as if messages had brought them. Offsets are those of partition 0."""

    def __init__(self, database, name):
        self.database, self.name = database, name
        self.offset = 0

    def record(self, exporter, run, at):
        self.offset += 1
        self.database.session.query(
            f"INSERT INTO {self.name}.inbox (exporter, run, sequence, src_addr, dst_addr, packets, bytes, "
            f"time_flow_start_ns, time_flow_end_ns, partition, offset) VALUES ('{exporter}', {run}, {self.offset}, "
            f"unhex('0a000001'), unhex('0a000002'), 1, 100, {at * SECOND_NS}, {at * SECOND_NS}, 0, {self.offset})"
        )
        return self.offset

    def tick(self, exporter, run, tick, at, records, offset=-1, watermark=0, final=False, lost=0):
        self.database.session.query(
            f"INSERT INTO {self.name}.inbox_ticks (exporter, run, topic, tick, time_ns, final, watermark_ns, "
            f"partition, partitions, offset, records, packets, bytes, lost_records) VALUES ('{exporter}', {run}, 't', "
            f"{tick}, {at * SECOND_NS}, {final}, {watermark * SECOND_NS}, 0, 1, {offset}, {records}, {records}, "
            f"{100 * records}, {lost})"
        )

    def minutes(self, *columns):
        """For each minute, in order: whether it is complete, and further columns."""
        names = ", ".join(("complete", *columns))
        return self.database.rows(f"SELECT {names} FROM {self.name}.complete_minutes ORDER BY minute")


def check_fresh(database, agree):
    """Neither a run that has just begun nor one without a watermark makes the minutes before it incomplete."""
    fresh = Runs(database, "fresh")
    offset = fresh.record("old", 1, NOW - 3_600)
    fresh.tick("old", 1, 1, NOW - 3_500, 1, offset, final=True)
    # The run's first tick announces seven records, of which one is here, and belongs to the current
    # minute.
    fresh.record("new", 2, NOW)
    fresh.tick("new", 2, 1, NOW, 7, 99)
    agree("a run that has just begun", fresh.minutes("waits_for"), [[1, []], [0, ["new"]]])
    offset = fresh.record("endless", 3, NOW - 1_200)
    fresh.tick("endless", 3, 1, NOW - 1_000, 1, offset)
    fresh.tick("endless", 3, 2, NOW, 1, offset)
    fresh.record("untold", 4, NOW - 2_400)
    found = fresh.minutes("waits_for")
    waits = [[1, []], [None, []], [0, ["endless"]], [0, ["endless", "new"]]]
    agree("minutes with a run without ticks or watermark", found, waits)
    # All records that the run sent are here, and it has ended.
    fresh.tick("endless", 3, 3, NOW, 1, offset, final=True)
    agree("minutes once it has ended", fresh.minutes("waits_for"), [[1, []], [None, []], [1, []], [0, ["new"]]])


def check_old(database, agree):
    """A minute whose ticks are no longer kept is neither complete nor incomplete, but NULL."""
    old = Runs(database, "old")
    first = old.record("a", 1, NOW - 3 * DAY)
    second = old.record("a", 1, NOW - DAY)
    old.tick("a", 1, 1, NOW - 3 * DAY, 1, first)
    # Another run began and ended before that, within a minute.
    old.record("b", 2, NOW - 4 * DAY)
    old.tick("b", 2, 1, NOW - 4 * DAY, 1, 3, final=True)
    old.tick("a", 1, 100_000, NOW - DAY - 40_000, 1, first, NOW - DAY - 40_100)
    old.tick("a", 1, 200_000, NOW, 2, second, NOW - 100)
    agree("minutes before the oldest tick", old.minutes(), [[None], [None], [1]])
    found = database.rows("SELECT tick, state FROM old.checked_ticks ORDER BY tick")
    agree("ticks that are kept", found, [[100_000, "unknown"], [200_000, "complete"]])


def check_losses(database, agree):
    """A minute shows how many of its records the exporter may have given up."""
    runs = Runs(database, "losses")
    begin = (NOW - 3_600) // 60 * 60
    offsets = [runs.record("a", 1, begin + 60 * minute) for minute in range(4)]
    for minute, lost in enumerate((0, 0, 5, 5)):
        at = begin + 60 * (minute + 1)
        runs.tick("a", 1, minute + 1, at, minute + 1, offsets[minute], at, lost=lost)
    runs.tick("a", 1, 5, begin + 250, 4, offsets[3], final=True, lost=5)
    # The records were lost between ticks 2 and 3. Tick 3 was sent at the very beginning of minute 3, so they count
    # in minutes 2 and 3.
    agree("losses by minute", runs.minutes("lost"), [[1, 0], [1, 0], [1, 5], [1, 5]])


def check_ended(database, agree):
    """Minutes wait for a run up to its end, both if it has ended and if it was killed and never had a watermark."""
    ended = Runs(database, "ended")
    offset = ended.record("gap", 1, NOW - 3_000)
    ended.tick("gap", 1, 1, NOW - 2_700, 2, offset, final=True)
    offset = ended.record("killed", 2, NOW - 1_800)
    ended.tick("killed", 2, 1, NOW - 1_790, 1, offset)
    offset = ended.record("later", 3, NOW - 600)
    ended.tick("later", 3, 1, NOW - 500, 1, offset, final=True)
    agree("minutes of runs that ended", ended.minutes("waits_for"), [[0, ["gap"]], [0, ["killed"]], [1, []]])


def check(database, agree):
    check_fresh(database, agree)
    check_ended(database, agree)
    check_old(database, agree)
    check_losses(database, agree)
