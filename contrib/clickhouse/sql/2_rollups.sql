-- SPDX-License-Identifier: Apache-2.0
-- Sums of records. A record counts in the minute of its first packet; with --align 1m, all of its packets
-- are in that minute. SummingMergeTree adds up rows only when parts merge, so queries have to use sum().

-- By minute: traffic between two addresses, by service and application.
CREATE TABLE IF NOT EXISTS turboflow.traffic_1m
(
    time DateTime('UTC'),
    exporter LowCardinality(String),
    src_addr IPv6,
    dst_addr IPv6,
    protocol UInt8,
    -- The lower of the two ports, which is usually the server's. 0 for protocols without ports.
    service_port UInt16,
    application LowCardinality(String),
    records UInt64,
    packets UInt64,
    bytes UInt64
)
ENGINE = SummingMergeTree((records, packets, bytes))
PARTITION BY toDate(time)
ORDER BY (time, exporter, src_addr, dst_addr, protocol, service_port, application)
TTL time + INTERVAL 30 DAY
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS turboflow.records_to_1m TO turboflow.traffic_1m AS
SELECT
    toStartOfMinute(toDateTime(first, 'UTC')) AS time,
    exporter, src_addr, dst_addr, protocol,
    least(src_port, dst_port) AS service_port,
    application,
    count() AS records, sum(packets) AS packets, sum(bytes) AS bytes
FROM turboflow.records
GROUP BY ALL;

-- By hour, without ports.
CREATE TABLE IF NOT EXISTS turboflow.traffic_1h
(
    time DateTime('UTC'),
    exporter LowCardinality(String),
    src_addr IPv6,
    dst_addr IPv6,
    protocol UInt8,
    application LowCardinality(String),
    records UInt64,
    packets UInt64,
    bytes UInt64
)
ENGINE = SummingMergeTree((records, packets, bytes))
PARTITION BY toYYYYMM(time)
ORDER BY (time, exporter, src_addr, dst_addr, protocol, application)
TTL time + INTERVAL 1 YEAR
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS turboflow.records_to_1h TO turboflow.traffic_1h AS
SELECT
    toStartOfHour(toDateTime(first, 'UTC')) AS time,
    exporter, src_addr, dst_addr, protocol, application,
    count() AS records, sum(packets) AS packets, sum(bytes) AS bytes
FROM turboflow.records
GROUP BY ALL;

-- By day, with networks (/24 of IPv4, /48 of IPv6) instead of addresses.
CREATE TABLE IF NOT EXISTS turboflow.traffic_1d
(
    time DateTime('UTC'),
    exporter LowCardinality(String),
    src_net IPv6,
    dst_net IPv6,
    protocol UInt8,
    application LowCardinality(String),
    records UInt64,
    packets UInt64,
    bytes UInt64
)
ENGINE = SummingMergeTree((records, packets, bytes))
PARTITION BY toYYYYMM(time)
ORDER BY (time, exporter, src_net, dst_net, protocol, application)
TTL time + INTERVAL 5 YEAR
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS turboflow.records_to_1d TO turboflow.traffic_1d AS
WITH (address) -> tupleElement(
    IPv6CIDRToRange(address, if(startsWith(IPv6NumToString(address), '::ffff:'), 120, 48)), 1) AS net
SELECT
    toStartOfDay(toDateTime(first, 'UTC')) AS time,
    exporter, net(src_addr) AS src_net, net(dst_addr) AS dst_net, protocol, application,
    count() AS records, sum(packets) AS packets, sum(bytes) AS bytes
FROM turboflow.records
GROUP BY ALL;
