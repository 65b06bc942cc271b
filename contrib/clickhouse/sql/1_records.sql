-- SPDX-License-Identifier: Apache-2.0
-- Flow records, one row each. docs/clickhouse.md describes the tables.
CREATE DATABASE IF NOT EXISTS turboflow;

-- Incoming records: fields of FlowMessage (contrib/kafka/turboflow.proto) with their names there, and the
-- partition and offset of the message. Rows are passed on to the views and not stored.
CREATE TABLE IF NOT EXISTS turboflow.inbox
(
    exporter String,
    run UInt64,
    sequence UInt64,
    src_addr String,
    dst_addr String,
    src_port UInt32,
    dst_port UInt32,
    proto UInt32,
    packets UInt64,
    bytes UInt64,
    time_flow_start_ns UInt64,
    time_flow_end_ns UInt64,
    tcp_flags UInt32,
    ip_tos UInt32,
    ip_ttl UInt32,
    min_ttl UInt32,
    min_length UInt32,
    max_length UInt32,
    end_reason UInt32,
    in_if UInt32,
    out_if UInt32,
    vlan_id UInt32,
    application String,
    application_category String,
    risk String,
    server_name String,
    ja4 String,
    dns_query_name String,
    community_id String,
    verdict String,
    rule String,
    partition UInt64,
    offset UInt64
)
ENGINE = Null;

-- (exporter, run, sequence) identifies a record. If a record was inserted twice, the duplicate disappears
-- when parts merge, and with FINAL at once. feed.py inserts with deduplication tokens, so no record is
-- inserted twice.
CREATE TABLE IF NOT EXISTS turboflow.records
(
    first DateTime64(9, 'UTC') CODEC(Delta, ZSTD),
    last DateTime64(9, 'UTC') CODEC(Delta, ZSTD),
    src_addr IPv6,
    dst_addr IPv6,
    src_port UInt16,
    dst_port UInt16,
    protocol UInt8,
    packets UInt64 CODEC(T64, ZSTD),
    bytes UInt64 CODEC(T64, ZSTD),
    tcp_flags UInt16,
    tos UInt8,
    min_ttl UInt8,
    max_ttl UInt8,
    min_length UInt32 CODEC(T64, ZSTD),
    max_length UInt32 CODEC(T64, ZSTD),
    end_reason UInt8,
    in_if UInt32 CODEC(T64, ZSTD),
    out_if UInt32 CODEC(T64, ZSTD),
    vlan UInt16,
    application LowCardinality(String),
    application_category LowCardinality(String),
    risk LowCardinality(String),
    server_name String CODEC(ZSTD),
    ja4 LowCardinality(String),
    dns_query_name String CODEC(ZSTD),
    community_id String CODEC(ZSTD),
    verdict LowCardinality(String),
    rule LowCardinality(String),
    exporter LowCardinality(String),
    run UInt64,
    sequence UInt64 CODEC(Delta, ZSTD),
    partition UInt16,
    offset UInt64 CODEC(Delta, ZSTD)
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(first)
ORDER BY (toStartOfMinute(first), exporter, run, sequence)
TTL toDateTime(first) + INTERVAL 7 DAY
SETTINGS non_replicated_deduplication_window = 10000;

-- IPv4 addresses have 4 bytes in messages. They are stored as ::ffff:a.b.c.d.
CREATE MATERIALIZED VIEW IF NOT EXISTS turboflow.inbox_to_records TO turboflow.records AS
WITH
    unhex('00000000000000000000ffff') AS mapped,
    (address) -> CAST(toFixedString(if(length(address) = 4, concat(mapped, address), address), 16), 'IPv6') AS ip
SELECT
    fromUnixTimestamp64Nano(toInt64(time_flow_start_ns), 'UTC') AS first,
    fromUnixTimestamp64Nano(toInt64(time_flow_end_ns), 'UTC') AS last,
    ip(src_addr) AS src_addr,
    ip(dst_addr) AS dst_addr,
    toUInt16(src_port) AS src_port,
    toUInt16(dst_port) AS dst_port,
    toUInt8(proto) AS protocol,
    packets,
    bytes,
    toUInt16(tcp_flags) AS tcp_flags,
    toUInt8(ip_tos) AS tos,
    toUInt8(min_ttl) AS min_ttl,
    toUInt8(ip_ttl) AS max_ttl,
    min_length,
    max_length,
    toUInt8(end_reason) AS end_reason,
    in_if,
    out_if,
    toUInt16(vlan_id) AS vlan,
    application,
    application_category,
    risk,
    server_name,
    ja4,
    dns_query_name,
    community_id,
    verdict,
    rule,
    exporter,
    run,
    sequence,
    toUInt16(partition) AS partition,
    offset
FROM turboflow.inbox;
