-- SPDX-License-Identifier: Apache-2.0
-- ClickHouse reads the topics itself, at least once: after a crash, messages may be inserted twice, which
-- turboflow.missing then shows. feed.py inserts exactly once; use only one of the two.
-- Brokers and topics are those of compose.yaml and docs/clickhouse.md; set yours. turboflow.proto has to be in
-- the server's folder of format schemas.

CREATE TABLE IF NOT EXISTS turboflow.kafka_records
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
    rule String
)
ENGINE = Kafka
SETTINGS
    kafka_broker_list = 'kafka:9092',
    kafka_topic_list = 'flows',
    kafka_group_name = 'turboflow-clickhouse',
    kafka_format = 'Protobuf',
    kafka_schema = 'turboflow.proto:FlowMessage',
    kafka_num_consumers = 1,
    kafka_max_block_size = 65536,
    kafka_flush_interval_ms = 1000;

CREATE MATERIALIZED VIEW IF NOT EXISTS turboflow.kafka_to_inbox TO turboflow.inbox AS
SELECT *, _partition AS partition, _offset AS offset
FROM turboflow.kafka_records;

CREATE TABLE IF NOT EXISTS turboflow.kafka_ticks
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
ENGINE = Kafka
SETTINGS
    kafka_broker_list = 'kafka:9092',
    kafka_topic_list = 'flows.ticks',
    kafka_group_name = 'turboflow-clickhouse',
    kafka_format = 'JSONEachRow',
    kafka_flush_interval_ms = 1000;

CREATE MATERIALIZED VIEW IF NOT EXISTS turboflow.kafka_to_ticks TO turboflow.inbox_ticks AS
SELECT *
FROM turboflow.kafka_ticks;
