-- SPDX-License-Identifier: Apache-2.0
-- Flows of the whole network, from records of several vantage points. A router lowers the TTL by one, so
-- records with equal flow key and equal highest TTL are taken as one hop of the flow. The vantage points of
-- a hop each see a part of its packets, so their sums are added up. The first hop has the highest TTL and
-- all packets of the flow; the later hops are the rest of its path.
-- No record may span two minutes: vantage points need --align 1m.
CREATE TABLE IF NOT EXISTS turboflow.network_hops
(
    minute DateTime('UTC'),
    src_addr IPv6,
    dst_addr IPv6,
    src_port UInt16,
    dst_port UInt16,
    protocol UInt8,
    ttl UInt8,
    packets SimpleAggregateFunction(sum, UInt64),
    bytes SimpleAggregateFunction(sum, UInt64),
    first SimpleAggregateFunction(min, DateTime64(9, 'UTC')),
    last SimpleAggregateFunction(max, DateTime64(9, 'UTC')),
    exporters SimpleAggregateFunction(groupUniqArrayArray, Array(String))
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(minute)
ORDER BY (minute, src_addr, dst_addr, src_port, dst_port, protocol, ttl)
TTL minute + INTERVAL 7 DAY
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS turboflow.records_to_hops TO turboflow.network_hops AS
SELECT
    toStartOfMinute(toDateTime(records.first, 'UTC')) AS minute,
    src_addr, dst_addr, src_port, dst_port, protocol, max_ttl AS ttl,
    sum(packets) AS packets, sum(bytes) AS bytes,
    min(records.first) AS first, max(records.last) AS last,
    groupUniqArray(toString(exporter)) AS exporters
FROM turboflow.records
GROUP BY ALL;

-- Hops of the minutes in [begin, end), each with the highest and lowest TTL of its flow. A packet may pass
-- the first hop in one minute and the next hop in the following minute, so the first and last hop are
-- determined over the minutes before and after as well. Otherwise, such a packet would count twice.
CREATE VIEW IF NOT EXISTS turboflow.network_hops_between AS
SELECT *
FROM
(
    SELECT
        *,
        max(ttl) OVER around AS first_ttl,
        min(ttl) OVER around AS last_ttl
    FROM
    (
        SELECT
            minute, src_addr, dst_addr, src_port, dst_port, protocol, ttl,
            sum(hops.packets) AS packets, sum(hops.bytes) AS bytes,
            min(hops.first) AS first, max(hops.last) AS last,
            arraySort(groupUniqArrayArray(hops.exporters)) AS exporters
        FROM turboflow.network_hops AS hops
        WHERE minute >= toDateTime({begin:DateTime('UTC')}, 'UTC') - 60 AND minute < toDateTime({end:DateTime('UTC')}, 'UTC') + 60
        GROUP BY minute, src_addr, dst_addr, src_port, dst_port, protocol, ttl
    )
    WINDOW around AS (
        PARTITION BY src_addr, dst_addr, src_port, dst_port, protocol
        ORDER BY toUnixTimestamp(minute) RANGE BETWEEN 60 PRECEDING AND 60 FOLLOWING)
)
WHERE minute >= {begin:DateTime('UTC')} AND minute < {end:DateTime('UTC')};

-- Flows of the network, by minute. `lost` of a minute includes packets that were in flight between two hops
-- when it ended; `lost` of the next minute is lower by these packets. So sums over several minutes are exact.
CREATE VIEW IF NOT EXISTS turboflow.network_flows AS
SELECT
    minute, src_addr, dst_addr, src_port, dst_port, protocol,
    sumIf(hops.packets, hops.ttl = hops.first_ttl) AS packets,
    sumIf(hops.bytes, hops.ttl = hops.first_ttl) AS bytes,
    toInt64(packets) - toInt64(sumIf(hops.packets, hops.ttl = hops.last_ttl)) AS lost,
    min(hops.first) AS first,
    max(hops.last) AS last,
    arrayMap(hop -> hop.2, arrayReverseSort(groupArray((hops.ttl, hops.exporters)))) AS path
FROM turboflow.network_hops_between(begin = {begin:DateTime('UTC')}, end = {end:DateTime('UTC')}) AS hops
GROUP BY minute, src_addr, dst_addr, src_port, dst_port, protocol;
