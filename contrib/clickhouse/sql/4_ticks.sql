-- SPDX-License-Identifier: Apache-2.0
-- Ticks: what exporters say they have sent, compared with what has arrived. docs/kafka.md describes the fields.
CREATE TABLE IF NOT EXISTS turboflow.inbox_ticks
(
    exporter String,
    run UInt64,
    topic String,
    tick UInt64,
    time_ns UInt64,
    final Bool,
    late_records UInt64,
    watermark_ns UInt64,
    partition UInt32,
    partitions UInt32,
    offset Int64,
    records UInt64,
    packets UInt64,
    bytes UInt64,
    run_records UInt64,
    run_packets UInt64,
    run_bytes UInt64,
    lost_records UInt64,
    lost_packets UInt64,
    lost_bytes UInt64
)
ENGINE = Null;

CREATE TABLE IF NOT EXISTS turboflow.ticks
(
    exporter LowCardinality(String),
    run UInt64,
    partition UInt16,
    tick UInt64 CODEC(Delta, ZSTD),
    time DateTime64(3, 'UTC') CODEC(Delta, ZSTD),
    -- No later record has a packet before this time, late packets excepted. The maximum in a final tick.
    watermark DateTime64(9, 'UTC') CODEC(Delta, ZSTD),
    final Bool,
    -- `records`, `packets` and `bytes` are sums up to offset `up_to`, which is `offset`, or the maximum in a final
    -- tick.
    offset Int64 CODEC(Delta, ZSTD),
    up_to Int64 CODEC(Delta, ZSTD),
    records UInt64 CODEC(Delta, ZSTD),
    packets UInt64 CODEC(Delta, ZSTD),
    bytes UInt64 CODEC(Delta, ZSTD),
    run_records UInt64 CODEC(Delta, ZSTD),
    run_packets UInt64 CODEC(Delta, ZSTD),
    run_bytes UInt64 CODEC(Delta, ZSTD),
    lost_records UInt64 CODEC(Delta, ZSTD),
    lost_packets UInt64 CODEC(Delta, ZSTD),
    lost_bytes UInt64 CODEC(Delta, ZSTD),
    late_records UInt64 CODEC(Delta, ZSTD)
)
ENGINE = ReplacingMergeTree
ORDER BY (exporter, run, partition, tick)
TTL toDateTime(time) + INTERVAL 2 DAY
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS turboflow.inbox_to_ticks TO turboflow.ticks AS
SELECT
    exporter, run, toUInt16(inbox.partition) AS partition, tick,
    fromUnixTimestamp64Milli(toInt64(intDiv(time_ns, 1000000)), 'UTC') AS time,
    fromUnixTimestamp64Nano(if(final, 9223372036854775807, toInt64(watermark_ns)), 'UTC') AS watermark,
    final, inbox.offset AS offset,
    if(final, 9223372036854775807, inbox.offset) AS up_to,
    records, packets, bytes, run_records, run_packets, run_bytes,
    lost_records, lost_packets, lost_bytes, late_records
FROM turboflow.inbox_ticks AS inbox;

-- What has arrived in each message.
CREATE TABLE IF NOT EXISTS turboflow.arrivals
(
    exporter LowCardinality(String),
    run UInt64,
    partition UInt16,
    offset Int64 CODEC(Delta, ZSTD),
    records UInt64,
    packets UInt64,
    bytes UInt64,
    time SimpleAggregateFunction(max, DateTime)
)
ENGINE = SummingMergeTree((records, packets, bytes))
ORDER BY (exporter, run, partition, offset)
TTL time + INTERVAL 3 DAY
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS turboflow.records_to_arrivals TO turboflow.arrivals AS
SELECT
    exporter, run, partition, toInt64(source.offset) AS offset,
    count() AS records, sum(packets) AS packets, sum(bytes) AS bytes, now() AS time
FROM turboflow.records AS source
GROUP BY ALL;

-- For each run: when the first and the last of the flows that have arrived began. A row is kept at least as
-- long as the sums of its minutes (traffic_1m).
CREATE TABLE IF NOT EXISTS turboflow.runs
(
    exporter LowCardinality(String),
    run UInt64,
    first SimpleAggregateFunction(min, DateTime64(9, 'UTC')),
    last SimpleAggregateFunction(max, DateTime64(9, 'UTC')),
    time SimpleAggregateFunction(max, DateTime)
)
ENGINE = AggregatingMergeTree
ORDER BY (exporter, run)
TTL time + INTERVAL 31 DAY
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS turboflow.records_to_runs TO turboflow.runs AS
SELECT exporter, run, min(source.first) AS first, max(source.first) AS last, now() AS time
FROM turboflow.records AS source
GROUP BY exporter, run;

-- For each tick: what was sent since the previous tick, and how much of that has arrived. `state` is complete,
-- waiting (the rest may still arrive), missing, twice (more has arrived than was sent), or unknown (the
-- previous ticks are no longer kept). ClickHouse deletes expired ticks with a delay, so expired ticks are
-- left out.
CREATE VIEW IF NOT EXISTS turboflow.checked_ticks AS
WITH
    steps AS
    (
        SELECT
            exporter, run, partition, tick, time, watermark, final, offset, up_to,
            lagInFrame(tick, 1, 0) OVER before AS tick_before,
            lagInFrame(toInt64(up_to), 1, -1) OVER before AS up_to_before,
            toInt64(records) - toInt64(lagInFrame(records, 1, 0) OVER before) AS sent_records,
            toInt64(packets) - toInt64(lagInFrame(packets, 1, 0) OVER before) AS sent_packets,
            toInt64(bytes) - toInt64(lagInFrame(bytes, 1, 0) OVER before) AS sent_bytes,
            toInt64(lost_records) - toInt64(lagInFrame(lost_records, 1, 0) OVER before) AS lost,
            toInt64(late_records) - toInt64(lagInFrame(late_records, 1, 0) OVER before) AS late,
            lagInFrame(toUnixTimestamp64Nano(watermark), 1, 0) OVER before AS watermark_before_ns,
            tick_before = 0 AND tick > 1 AND time < now() - INTERVAL 1 DAY AS is_cut
        FROM (SELECT * FROM turboflow.ticks FINAL WHERE time > now() - INTERVAL 2 DAY)
        WINDOW before AS (PARTITION BY exporter, run, partition ORDER BY tick
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    ),
    here AS
    (
        SELECT
            exporter, run, partition, steps.tick AS tick,
            sum(arrivals.records) AS records, sum(arrivals.packets) AS packets, sum(arrivals.bytes) AS bytes
        FROM turboflow.arrivals AS arrivals
        ASOF INNER JOIN (SELECT exporter, run, partition, tick, up_to FROM steps WHERE up_to > up_to_before) AS steps
            ON arrivals.exporter = steps.exporter AND arrivals.run = steps.run
                AND arrivals.partition = steps.partition AND arrivals.offset <= steps.up_to
        GROUP BY exporter, run, partition, tick
    ),
    ends AS
    (
        SELECT exporter, run, partition, max(offset) AS last_offset FROM turboflow.arrivals
        GROUP BY exporter, run, partition
    )
SELECT
    steps.exporter AS exporter, steps.run AS run, steps.partition AS partition, steps.tick AS tick,
    steps.tick_before AS tick_before, steps.time AS time, steps.watermark AS watermark, steps.final AS final,
    steps.sent_records AS sent_records, toInt64(here.records) AS here_records,
    steps.sent_packets AS sent_packets, toInt64(here.packets) AS here_packets,
    steps.sent_bytes AS sent_bytes, toInt64(here.bytes) AS here_bytes,
    if(steps.is_cut, 0, steps.lost) AS lost, if(steps.is_cut, 0, steps.late) AS late,
    fromUnixTimestamp64Nano(steps.watermark_before_ns, 'UTC') AS watermark_before,
    multiIf(
        steps.is_cut, 'unknown',
        (sent_records, sent_packets, sent_bytes) = (here_records, here_packets, here_bytes), 'complete',
        here_records > sent_records, 'twice',
        ends.last_offset >= steps.offset OR time < now() - INTERVAL 1 MINUTE, 'missing',
        'waiting') AS state
FROM steps
LEFT JOIN here ON steps.exporter = here.exporter AND steps.run = here.run
    AND steps.partition = here.partition AND steps.tick = here.tick
LEFT JOIN ends ON steps.exporter = ends.exporter AND steps.run = ends.run AND steps.partition = ends.partition;

-- For each run: up to which time all its records have arrived (`complete_until`). `first_time` is the time of
-- the oldest tick that is kept. The ticks cover the time from `known_from` on, or all of the run if its first
-- tick is still kept.
CREATE VIEW IF NOT EXISTS turboflow.complete_runs AS
SELECT
    exporter, run,
    min(until) AS complete_until,
    min(first_time) AS first_time,
    max(last_time) AS last_time,
    max(cut_time) AS known_from,
    min(last_watermark) AS watermark,
    min(is_final) AS final,
    groupArrayIf(partition, is_behind) AS partitions_behind,
    -- Records that were given up between two ticks: the watermark of the earlier tick, the time of the later
    -- tick, and the number of records. None of their packets is before that watermark.
    groupArrayArray(losses_of_partition) AS losses
FROM
(
    SELECT
        exporter, run, partition,
        maxIf(checked.watermark, behind = 0 OR checked.tick < behind) AS until,
        min(checked.time) AS first_time,
        max(checked.time) AS last_time,
        maxIf(checked.time, checked.state = 'unknown') AS cut_time,
        max(checked.watermark) AS last_watermark,
        max(checked.final) AS is_final,
        any(behind) > 0 AS is_behind,
        groupArrayIf((checked.watermark_before, checked.time, checked.lost), partition = 0 AND checked.lost > 0)
            AS losses_of_partition
    FROM
    (
        -- The first tick that disagrees with what has arrived; 0 if there is none.
        SELECT
            *, minIf(tick, state NOT IN ('complete', 'unknown')) OVER (PARTITION BY exporter, run, partition) AS behind
        FROM turboflow.checked_ticks
    ) AS checked
    GROUP BY exporter, run, partition
)
GROUP BY exporter, run;

-- Messages that feed.py skipped, because they cannot be decoded.
CREATE TABLE IF NOT EXISTS turboflow.unreadable
(
    topic LowCardinality(String),
    partition Int32,
    offset Int64,
    why String,
    time DateTime
)
ENGINE = ReplacingMergeTree
ORDER BY (topic, partition, offset)
TTL time + INTERVAL 30 DAY;

-- What is wrong, and where. `partition` is -1 for problems that do not concern a single partition.
CREATE VIEW IF NOT EXISTS turboflow.missing AS
SELECT
    exporter, run, toInt32(partition) AS partition, tick_before AS after_tick, tick AS until_tick, time, state AS what,
    sent_records - here_records AS records, sent_packets - here_packets AS packets, sent_bytes - here_bytes AS bytes
FROM turboflow.checked_ticks WHERE state IN ('missing', 'twice')
UNION ALL
-- Records that the exporter gave up: brokers were unreachable for too long, or a queue was full.
SELECT exporter, run, -1, tick_before, tick, time, 'lost', lost, 0, 0
FROM turboflow.checked_ticks WHERE lost > 0 AND partition = 0
UNION ALL
-- Records of packets that arrived after the watermark had passed them: their minute was already complete.
SELECT exporter, run, -1, tick_before, tick, time, 'late', late, 0, 0
FROM turboflow.checked_ticks WHERE late > 0 AND partition = 0
UNION ALL
-- A run that has not ended, but has sent no tick for a minute.
SELECT exporter, run, -1, 0, 0, last_time, 'silent', 0, 0, 0
FROM turboflow.complete_runs WHERE NOT final AND last_time < now() - INTERVAL 1 MINUTE
UNION ALL
-- Messages that cannot be decoded, so their exporters are unknown.
SELECT '', 0, partition, 0, 0, time, 'unreadable', 0, 0, 0
FROM turboflow.unreadable FINAL;

-- Each minute with records, and whether everything that was sent for it has arrived: `complete` is 1, 0, or
-- NULL if the ticks do not say. Minutes wait for a run from its first record on, or from 5 s before its first
-- tick on, whichever is earlier, because the first tick may be sent up to 5 s after the first packet. If a run
-- has been silent for 5 minutes, only minutes up to its last watermark wait for it; if it has ended, only minutes
-- up to its end. `lost` is an upper bound of the records that were given up: the minute of such a record is
-- only known to lie between two ticks, so it counts in each minute between them.
CREATE VIEW IF NOT EXISTS turboflow.complete_minutes AS
SELECT
    minutes.minute AS minute,
    any(minutes.records) AS records, any(minutes.packets) AS packets, any(minutes.bytes) AS bytes,
    arraySort(groupUniqArrayIf(
        spans.exporter,
        spans.has_ticks AND spans.begin < minutes.minute + 60 AND spans.complete_until < minutes.minute + 60
            AND multiIf(
                spans.final, minutes.minute <= spans.end,
                spans.last_time > now() - INTERVAL 5 MINUTE, true,
                spans.watermark <= toDateTime(0, 'UTC'), minutes.minute <= spans.end,
                minutes.minute - 60 <= spans.watermark))) AS waits_for,
    countIf(spans.begin < minutes.minute + 60 AND minutes.minute <= spans.end) AS runs,
    countIf(spans.begin < minutes.minute + 60 AND minutes.minute <= spans.end
        AND (NOT spans.has_ticks OR minutes.minute < spans.known_from)) AS runs_unknown,
    sum(arraySum(
        loss -> if(greatest(loss.1, spans.begin) < minutes.minute + 60 AND minutes.minute <= loss.2, loss.3, 0),
        spans.losses)) AS lost,
    multiIf(notEmpty(waits_for), 0, runs = 0 OR runs_unknown > 0, NULL, 1) AS complete
FROM
(
    SELECT time AS minute, sum(sums.records) AS records, sum(sums.packets) AS packets, sum(sums.bytes) AS bytes
    FROM turboflow.traffic_1m AS sums
    GROUP BY time
) AS minutes
LEFT JOIN
(
    SELECT
        if(told.exporter = '', here.exporter, told.exporter) AS exporter,
        told.exporter != '' AS has_ticks,
        told.first_time - INTERVAL 5 SECOND AS first_time,
        multiIf(told.exporter = '', here.first, here.exporter = '', first_time, least(here.first, first_time)) AS begin,
        greatest(here.last, told.last_time) AS end,
        told.complete_until AS complete_until, told.known_from AS known_from, told.watermark AS watermark,
        told.final AS final, told.last_time AS last_time, told.losses AS losses
    FROM
    (
        SELECT toString(own.exporter) AS exporter, run, min(own.first) AS first, max(own.last) AS last
        FROM turboflow.runs AS own
        GROUP BY exporter, run
    ) AS here
    FULL JOIN
    (
        SELECT
            toString(of.exporter) AS exporter, run, complete_until, first_time, last_time, known_from, watermark,
            final, losses
        FROM turboflow.complete_runs AS of
    ) AS told ON here.exporter = told.exporter AND here.run = told.run
) AS spans ON 1
GROUP BY minute;
