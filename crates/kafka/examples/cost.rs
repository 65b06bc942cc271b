// SPDX-License-Identifier: Apache-2.0
//! Cost of flow records as messages: encoding alone, and with addresses of topics the processor
//! time of the whole process until every record was acknowledged.
//!
//! `cargo run --release -p turboflow-kafka --features kafka --example cost -- RECORDS [TOPIC]...`

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use turboflow_formats::{Identity, TextOptions};
use turboflow_kafka::{Encoder, KafkaOptions, KafkaTarget, Records, TlsTexts, send_to};
use turboflow_merge::Layout;
use turboflow_record::{Definition, FlowBatch, Schema, Value};
use turboflow_transport::{Clock, SendOptions};

/// A small generator (splitmix64): equal records on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % limit
    }

    fn one_of(&mut self, values: &[u64]) -> Value<'static> {
        Value::Unsigned(values[self.below(values.len() as u64) as usize])
    }
}

/// Records of many clients and few services, flow sizes with a long tail.
fn batches(schema: &Schema, records: u64) -> Vec<FlowBatch> {
    let mut numbers = Numbers(1);
    let mut batches = Vec::new();
    for start in (0..records).step_by(8_192) {
        let mut batch = FlowBatch::new(schema);
        for index in start..records.min(start + 8_192) {
            let packets = 1 + (1_000 / (1 + numbers.below(1_000))) * numbers.below(3);
            let size = 40 + numbers.below(1_460);
            let last = 1_700_000_000_000_000_000 + index * 50_000 + numbers.below(10_000_000);
            let mut address =
                || Value::Address(Ipv4Addr::from_bits(numbers.below(300_000) as u32 * 7919).into());
            let ends = [address(), address()];
            let rest = [
                Value::Unsigned(32_768 + numbers.below(28_000)),
                numbers.one_of(&[443, 443, 443, 80, 53, 22, 8080, 123]),
                numbers.one_of(&[6, 6, 6, 17, 1]),
                Value::Unsigned(packets),
                Value::Unsigned(packets * size),
                Value::Unsigned(last - packets * numbers.below(1_000_000)),
                Value::Unsigned(last),
                numbers.one_of(&[0, 2, 18, 24, 27, 31]),
                Value::Unsigned(40 + numbers.below(30)),
                Value::Unsigned(size),
                numbers.one_of(&[64, 128, 57, 255, 60]),
                numbers.one_of(&[64, 128, 57, 255, 60]),
                numbers.one_of(&[0, 0, 0, 0, 8, 46]),
                numbers.one_of(&[1, 2, 3, 3, 3, 4]),
            ];
            let row: Vec<_> = ends.into_iter().chain(rest).collect();
            batch.push_row(&row);
        }
        batch.number_from(start + 1);
        batches.push(batch);
    }
    batches
}

/// Processor time of all threads, those that have ended included (Linux).
fn cpu() -> Result<Duration, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = text.rsplit_once(')').ok_or("no process")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(10 * ticks))
}

#[allow(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn monotonic() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Encoding alone, in each form.
fn print_encoding(
    own: &Records<'_>,
    batches: &[FlowBatch],
    records: u64,
) -> Result<(), Box<dyn Error>> {
    println!(
        "{:32} {:>12} {:>10} {:>10}",
        "encoding alone", "M records/s", "bytes", "messages"
    );
    for options in ["", "records=100", "format=json&records=100", "format=arrow"] {
        let mut encoder = Encoder::new(&format!("kafka://a/t?{options}").parse()?, own)?;
        let (mut bytes, mut messages) = (0, 0);
        let start = cpu()?;
        for batch in batches {
            encoder.encode(batch, &mut |message| {
                bytes += message.bytes.len();
                messages += 1;
            });
        }
        encoder.flush(&mut |message| {
            bytes += message.bytes.len();
            messages += 1;
        });
        let rate = records as f64 / (cpu()? - start).as_secs_f64() / 1e6;
        let size = bytes as f64 / records as f64;
        println!("{options:32} {rate:12.2} {size:10.1} {messages:10}");
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let records: u64 = arguments
        .next()
        .map_or(Ok(2_000_000), |text| text.parse())?;
    let layout = Layout::compile(&Definition::default(), false)?;
    let schema = layout.schema();
    let batches = batches(schema, records);
    let identity = Identity::new("benchmark", 1)?;
    let own = Records {
        schema,
        key_columns: Definition::default().key.len(),
        is_biflow: false,
        identity: &identity,
        metadata: &[],
        text: TextOptions::default(),
    };
    print_encoding(&own, &batches, records)?;
    for text in arguments {
        let target: KafkaTarget = text.parse()?;
        let clock = Clock {
            wall_ms: || 0,
            monotonic,
        };
        let options = KafkaOptions {
            send: SendOptions {
                patience: Duration::from_secs(60),
                linger: Duration::from_secs(60),
                ..SendOptions::new(clock)
            },
            tls: TlsTexts::default(),
            password: None,
        };
        let (start, begin) = (cpu()?, monotonic());
        let mut writer = send_to(&target, &own, &options)?;
        for batch in &batches {
            writer.write(batch)?;
        }
        let summary = writer.finish()?;
        let (cpu, wall) = (cpu()? - start, monotonic() - begin);
        println!(
            "{text}: {} records, {:.1} bytes each, {:.2} M records per second of processor time, \
             {:.2} M/s",
            summary.records,
            summary.bytes as f64 / summary.records as f64,
            summary.records as f64 / cpu.as_secs_f64() / 1e6,
            summary.records as f64 / wall.as_secs_f64() / 1e6,
        );
    }
    Ok(())
}
