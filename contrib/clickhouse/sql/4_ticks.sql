-- SPDX-License-Identifier: Apache-2.0
-- Ticks: what exporters say they have sent, held against what has arrived.
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
    tick UInt64,
    time DateTime64(3, 'UTC'),
    -- Complete up to this time. A final tick completes all times.
    watermark DateTime64(9, 'UTC'),
    final Bool,
    -- The sums are those of records up to this offset; of all records in a final tick.
    offset Int64,
    up_to Int64,
    records UInt64,
    packets UInt64,
    bytes UInt64,
    run_records UInt64,
    run_packets UInt64,
    run_bytes UInt64,
    lost_records UInt64,
    lost_packets UInt64,
    lost_bytes UInt64,
    late_records UInt64
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

-- What has arrived, by message.
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

-- Each tick: what was sent since the tick before, and what of that is here. `state` is complete, waiting (it
-- may still come), missing, or twice.
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
            toInt64(late_records) - toInt64(lagInFrame(late_records, 1, 0) OVER before) AS late
        FROM turboflow.ticks FINAL
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
    steps.lost AS lost, steps.late AS late,
    multiIf(
        -- The ticks before it are no longer kept.
        tick_before = 0 AND tick > 1 AND time < now() - INTERVAL 1 DAY, 'complete',
        (sent_records, sent_packets, sent_bytes) = (here_records, here_packets, here_bytes), 'complete',
        here_records > sent_records, 'twice',
        ends.last_offset >= steps.offset OR time < now() - INTERVAL 1 MINUTE, 'missing',
        'waiting') AS state
FROM steps
LEFT JOIN here ON steps.exporter = here.exporter AND steps.run = here.run
    AND steps.partition = here.partition AND steps.tick = here.tick
LEFT JOIN ends ON steps.exporter = ends.exporter AND steps.run = ends.run AND steps.partition = ends.partition;

-- Each run: up to which time its records are here without a gap.
CREATE VIEW IF NOT EXISTS turboflow.complete_runs AS
SELECT
    exporter, run,
    min(until) AS complete_until,
    max(last_time) AS last_time,
    min(last_watermark) AS watermark,
    min(is_final) AS final,
    groupArrayIf(partition, is_behind) AS partitions_behind
FROM
(
    SELECT
        exporter, run, partition,
        maxIf(checked.watermark, behind = 0 OR checked.tick < behind) AS until,
        max(checked.time) AS last_time,
        max(checked.watermark) AS last_watermark,
        max(checked.final) AS is_final,
        any(behind) > 0 AS is_behind
    FROM
    (
        -- The first tick of which not all is here; 0 if there is none.
        SELECT *, minIf(tick, state != 'complete') OVER (PARTITION BY exporter, run, partition) AS behind
        FROM turboflow.checked_ticks
    ) AS checked
    GROUP BY exporter, run, partition
)
GROUP BY exporter, run;

-- What is wrong, and where. `partition` is -1 where it is not about one.
CREATE VIEW IF NOT EXISTS turboflow.missing AS
SELECT exporter, run, toInt32(partition) AS partition, tick_before AS after_tick, tick AS until_tick, time, state AS what,
    sent_records - here_records AS records, sent_packets - here_packets AS packets, sent_bytes - here_bytes AS bytes
FROM turboflow.checked_ticks WHERE state IN ('missing', 'twice')
UNION ALL
-- What the exporter gave up: the brokers were away for too long, or a queue was full.
SELECT exporter, run, -1, tick_before, tick, time, 'lost', lost, 0, 0
FROM turboflow.checked_ticks WHERE lost > 0 AND partition = 0
UNION ALL
-- Records of packets that were later than the watermark: their minute was complete without them.
SELECT exporter, run, -1, tick_before, tick, time, 'late', late, 0, 0
FROM turboflow.checked_ticks WHERE late > 0 AND partition = 0
UNION ALL
-- A run that neither ticks nor has ended.
SELECT exporter, run, -1, 0, 0, last_time, 'silent', 0, 0, 0
FROM turboflow.complete_runs WHERE NOT final AND last_time < now() - INTERVAL 1 MINUTE;

-- The minutes of which there are records, and whether all is here. A run that has been silent for 5
-- minutes is waited for only in the minutes up to its last watermark.
CREATE VIEW IF NOT EXISTS turboflow.complete_minutes AS
SELECT
    minutes.minute AS minute,
    any(minutes.records) AS records, any(minutes.packets) AS packets, any(minutes.bytes) AS bytes,
    arraySort(groupUniqArrayIf(
        toString(runs.exporter),
        runs.complete_until < minutes.minute + 60
            AND (runs.last_time > now() - INTERVAL 5 MINUTE OR minutes.minute - 60 <= runs.watermark))) AS waits_for,
    -- Without ticks nobody knows.
    countIf(runs.exporter != '') > 0 AND empty(waits_for) AS complete
FROM
(
    SELECT time AS minute, sum(sums.records) AS records, sum(sums.packets) AS packets, sum(sums.bytes) AS bytes
    FROM turboflow.traffic_1m AS sums
    GROUP BY time
) AS minutes
LEFT JOIN turboflow.complete_runs AS runs ON 1
GROUP BY minute;
