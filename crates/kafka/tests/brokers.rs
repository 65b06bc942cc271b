// SPDX-License-Identifier: Apache-2.0
//! Mock brokers: which records arrive, which are lost, and what is reported.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use turboflow_formats::{ExportError, FlowWriter};
use turboflow_kafka::{KafkaOptions, TlsTexts, partition_of, send_to};
use turboflow_transport::{Clock, SendEvent, SendOptions};

use crate::support::{batch, identity, records, schema, target};

type Brokers = MockCluster<'static, DefaultProducerContext>;

const PARTITIONS: i32 = 4;

fn clock() -> Clock {
    #[allow(
        clippy::disallowed_methods,
        reason = "patience is measured in real time"
    )]
    fn monotonic() -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
    Clock {
        wall_ms: || 0,
        monotonic,
    }
}

/// Events of a target, by the first letter of its topic, because tests run in parallel.
static LOST: AtomicU64 = AtomicU64::new(0);
static BACK: AtomicU64 = AtomicU64::new(0);

fn observe(place: &str, event: &SendEvent<'_>) {
    if place.contains("/restart") {
        match event {
            SendEvent::Lost(_) => LOST.fetch_add(1, Ordering::SeqCst),
            SendEvent::Back => BACK.fetch_add(1, Ordering::SeqCst),
        };
    }
}

fn writer(brokers: &str, topic: &str, send: SendOptions) -> Box<dyn FlowWriter> {
    let (schema, identity) = (schema(), identity());
    let target = target(&format!("kafka://{brokers}/{topic}"));
    let options = KafkaOptions {
        send: SendOptions { observe, ..send },
        tls: TlsTexts::default(),
        password: None,
        observe_ticks: |place, error| panic!("{place}: {error}"),
    };
    send_to(&target, &records(&schema, &identity), &options).unwrap()
}

fn brokers(topic: &str) -> Brokers {
    let brokers = MockCluster::new(1).unwrap();
    brokers.create_topic(topic, PARTITIONS, 1).unwrap();
    brokers
}

/// All lines of the topic, with the partition of each.
fn consumed(brokers: &Brokers, topic: &str, lines: usize) -> Vec<(i32, String)> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers.bootstrap_servers())
        .set("group.id", "test")
        .create()
        .unwrap();
    let mut all = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        all.add_partition_offset(topic, partition, Offset::Beginning)
            .unwrap();
    }
    consumer.assign(&all).unwrap();
    let mut read = Vec::new();
    while read.len() < lines {
        let message = consumer
            .poll(Duration::from_secs(20))
            .expect("a message is missing");
        let message = message.unwrap();
        let key = message.key().unwrap();
        assert_eq!(message.partition(), partition_of(key, PARTITIONS));
        let text = std::str::from_utf8(message.payload().unwrap()).unwrap();
        read.extend(
            text.lines()
                .map(|line| (message.partition(), line.to_owned())),
        );
    }
    read
}

/// The sequence numbers of lines, in order.
fn sequences(lines: &[(i32, String)]) -> Vec<u64> {
    let number = |line: &str| {
        let (_, rest) = line.rsplit_once("\"sequence\":").unwrap();
        rest.trim_end_matches('}').parse().unwrap()
    };
    let mut numbers: Vec<u64> = lines.iter().map(|(_, line)| number(line)).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn every_record_arrives_once() {
    for options in ["format=json", "format=json&records=100&compression=zstd"] {
        let brokers = brokers("once");
        let place = brokers.bootstrap_servers();
        let send = SendOptions::new(clock());
        let mut writer = writer(&place, &format!("once?{options}"), send);
        for first in [1, 1_001, 2_001] {
            writer.write(&batch(first, 1_000)).unwrap();
        }
        let gauge = writer.sending().unwrap();
        let summary = writer.finish().unwrap();
        assert_eq!(summary.records, 3_000);
        let sent = gauge.read();
        assert_eq!((sent.records_sent, sent.records_lost), (3_000, 0));
        assert_eq!(sent.records_in_flight, 0);
        let lines = consumed(&brokers, "once", 3_000);
        assert!(sequences(&lines).into_iter().eq(1..=3_000), "{options}");
        let mut used: Vec<i32> = lines.iter().map(|(partition, _)| *partition).collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used, [0, 1, 2, 3]);
    }
}

#[test]
fn a_broker_that_goes_and_comes_back_loses_nothing() {
    let brokers = brokers("restart");
    let place = brokers.bootstrap_servers();
    let send = SendOptions {
        linger: Duration::from_secs(60),
        ..SendOptions::new(clock())
    };
    let mut writer = writer(&place, "restart?format=json", send);
    writer.write(&batch(1, 500)).unwrap();
    while writer.sending().unwrap().read().records_sent < 500 {
        writer.flush().unwrap();
        std::thread::yield_now();
    }
    brokers.broker_down(1).unwrap();
    writer.write(&batch(501, 500)).unwrap();
    while !writer.is_failing() {
        writer.flush().unwrap();
        std::thread::yield_now();
    }
    assert_eq!(LOST.load(Ordering::SeqCst), 1);
    writer.write(&batch(1_001, 500)).unwrap();
    brokers.broker_up(1).unwrap();
    assert_eq!(writer.finish().unwrap().records, 1_500);
    assert_eq!(BACK.load(Ordering::SeqCst), 1);
    let lines = consumed(&brokers, "restart", 1_500);
    assert!(sequences(&lines).into_iter().eq(1..=1_500));
}

#[test]
fn brokers_that_were_never_there_cost_a_limited_time_and_every_record() {
    let send = SendOptions {
        patience: Duration::ZERO,
        linger: Duration::from_millis(100),
        ..SendOptions::new(clock())
    };
    // No broker listens on this port (tcpmux).
    let mut writer = writer("127.0.0.1:1", "never?records=100", send);
    // More than the 64 MiB that the queue holds.
    for part in 0..1_000 {
        writer.write(&batch(1 + part * 1_000, 1_000)).unwrap();
    }
    assert!(writer.sending().unwrap().read().records_lost > 0);
    let error = writer.finish().unwrap_err();
    let ExportError::NotSent { records, lost, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((*records, *lost), (0, 1_000_000));
    assert!(
        error.to_string().contains("1000000 records count as lost"),
        "{error}"
    );
}
