// SPDX-License-Identifier: Apache-2.0
//! Compares ticks with what a consumer of the records finds.

use std::cell::Cell;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use serde_json::Value;
use turboflow_formats::{FlowWriter, Passed};
use turboflow_kafka::{KafkaOptions, TlsTexts, send_to};
use turboflow_transport::{Clock, SendOptions};

use crate::support::{batch, identity, records, schema, target};

type Brokers = MockCluster<'static, DefaultProducerContext>;

const PARTITIONS: i32 = 4;

thread_local! {
    /// The time in this test, in seconds. The writer reads it on the thread that uses the writer.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// A writer with the clock of this test, and its broker.
fn start(topic: &str) -> (Brokers, Box<dyn FlowWriter>) {
    let brokers = MockCluster::new(1).unwrap();
    brokers.create_topic(topic, PARTITIONS, 1).unwrap();
    let place = format!(
        "kafka://{}/{topic}?format=json&records=100",
        brokers.bootstrap_servers()
    );
    let (schema, identity) = (schema(), identity());
    let clock = Clock {
        wall_ms: || 1_000 * NOW.get(),
        monotonic: || Duration::from_secs(NOW.get()),
    };
    let options = KafkaOptions {
        send: SendOptions::new(clock),
        tls: TlsTexts::default(),
        password: None,
        observe_ticks: |place, error| panic!("{place}: {error}"),
    };
    let writer = send_to(&target(&place), &records(&schema, &identity), &options).unwrap();
    (brokers, writer)
}

/// Lets a second pass, in which the run reaches a watermark.
fn pass(writer: &mut Box<dyn FlowWriter>, watermark_ns: u64) {
    NOW.set(NOW.get() + 1);
    let passed = Passed {
        watermark_ns,
        records_overrun: 2,
    };
    writer.pass(passed).unwrap();
}

fn until_sent(writer: &mut Box<dyn FlowWriter>, records: u64) {
    while writer.sending().unwrap().read().records_sent < records {
        writer.flush().unwrap();
        std::thread::yield_now();
    }
}

/// The JSON lines of a topic, with partition and offset, up to the one that is the last.
fn lines(
    brokers: &Brokers,
    topic: &str,
    is_last: impl Fn(usize, &Value) -> bool,
) -> Vec<(i32, i64, Value)> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers.bootstrap_servers())
        .set("group.id", topic)
        .create()
        .unwrap();
    let mut all = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        all.add_partition_offset(topic, partition, Offset::Beginning)
            .unwrap();
    }
    consumer.assign(&all).unwrap();
    let mut read = Vec::new();
    loop {
        let message = consumer
            .poll(Duration::from_secs(20))
            .expect("a message is missing")
            .unwrap();
        for line in std::str::from_utf8(message.payload().unwrap())
            .unwrap()
            .lines()
        {
            let line: Value = serde_json::from_str(line).unwrap();
            let ends = is_last(read.len() + 1, &line);
            read.push((message.partition(), message.offset(), line));
            if ends {
                return read;
            }
        }
    }
}

fn ticks(brokers: &Brokers, topic: &str) -> Vec<Value> {
    let is_last = |_, line: &Value| line["final"] == true && line["partition"] == PARTITIONS - 1;
    let lines = lines(brokers, &format!("{topic}.ticks"), is_last);
    lines.into_iter().map(|(.., line)| line).collect()
}

fn number(line: &Value, name: &str) -> u64 {
    line[name].as_u64().unwrap()
}

#[test]
fn a_tick_has_the_sums_of_all_records_up_to_its_offset() {
    let (brokers, mut writer) = start("sums");
    pass(&mut writer, 0);
    let mut sent = 0;
    for second in 1..=5 {
        writer.write(&batch(sent + 1, 700)).unwrap();
        sent += 700;
        pass(&mut writer, second);
        if second % 2 == 0 {
            until_sent(&mut writer, sent);
        }
    }
    until_sent(&mut writer, sent);
    // While nothing is sent, the clock goes on.
    pass(&mut writer, 60);
    pass(&mut writer, 61);
    assert_eq!(writer.finish().unwrap().records, sent);

    let read = lines(&brokers, "sums", |number, _| number as u64 == sent);
    let ticks = ticks(&brokers, "sums");
    let mut last = 0;
    for tick in &ticks {
        let upto = |line: &&(i32, i64, Value)| {
            Some(i64::from(line.0)) == tick["partition"].as_i64()
                && Some(line.1) <= tick["offset"].as_i64()
        };
        let here: Vec<_> = read.iter().filter(upto).collect();
        assert_eq!(here.len() as u64, number(tick, "records"), "{tick}");
        for name in ["packets", "bytes"] {
            let sum: u64 = here.iter().map(|(.., record)| number(record, name)).sum();
            assert_eq!(sum, number(tick, name), "{tick}");
        }
        assert_eq!(
            (&tick["exporter"], number(tick, "run")),
            (&Value::from("tap-7"), 7)
        );
        assert_eq!(
            (number(tick, "lost_records"), number(tick, "late_records")),
            (2, 0)
        );
        assert!(number(tick, "watermark_ns") >= last);
        last = number(tick, "watermark_ns");
        assert_eq!(tick["topic"], "sums");
    }
    let of_last = &ticks[ticks.len() - PARTITIONS as usize..];
    assert_eq!(
        of_last
            .iter()
            .map(|tick| number(tick, "records"))
            .sum::<u64>(),
        sent
    );
    assert_eq!(number(&of_last[0], "run_records"), sent);
    assert_eq!(number(&of_last[0], "watermark_ns"), 61);
    let numbers: Vec<_> = ticks
        .iter()
        .filter(|tick| tick["partition"] == 0)
        .map(|tick| number(tick, "tick"))
        .collect();
    assert!(
        numbers.len() >= 3 && numbers.iter().copied().eq(1..=numbers.len() as u64),
        "{numbers:?}"
    );
}

#[test]
fn no_tick_is_ahead_of_what_the_brokers_have() {
    let (brokers, mut writer) = start("ahead");
    writer.write(&batch(1, 500)).unwrap();
    pass(&mut writer, 10);
    until_sent(&mut writer, 500);
    pass(&mut writer, 20);
    brokers.broker_down(1).unwrap();
    writer.write(&batch(501, 500)).unwrap();
    // Far more ticks than marks are remembered.
    (30..300).for_each(|second| pass(&mut writer, second));
    brokers.broker_up(1).unwrap();
    until_sent(&mut writer, 1_000);
    pass(&mut writer, 400);
    // These records begin at 2, a time that was already announced as complete.
    writer.write(&batch(1_001, 100)).unwrap();
    assert_eq!(writer.finish().unwrap().records, 1_100);
    let ticks = ticks(&brokers, "ahead");
    assert!(ticks.len() < 100, "{}", ticks.len());
    for tick in &ticks {
        let (watermark_ns, records) = (number(tick, "watermark_ns"), number(tick, "run_records"));
        assert!(watermark_ns <= 20 || records >= 1_000, "{tick}");
    }
    let last = ticks.last().unwrap();
    assert_eq!(
        (number(last, "watermark_ns"), number(last, "run_records")),
        (400, 1_100)
    );
    assert!([100, 600].contains(&number(last, "late_records")), "{last}");
}
