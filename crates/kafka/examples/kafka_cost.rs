// SPDX-License-Identifier: Apache-2.0
//! Cost of flow records as messages: encoding alone, and with addresses of topics the processor
//! time of the whole process until every record was acknowledged.
//!
//! `cargo run --release -p turboflow-kafka --features kafka --example kafka_cost -- N [TOPIC]...`

#[path = "../../formats/examples/traffic/mod.rs"]
mod traffic;

use std::error::Error;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use turboflow_formats::{Identity, TextOptions};
use turboflow_kafka::{Encoder, KafkaOptions, KafkaTarget, Message, Records, TlsTexts, send_to};
use turboflow_record::{Definition, FlowBatch};
use turboflow_transport::{Clock, SendOptions};

/// Number of distinct addresses.
const ADDRESSES: u64 = 300_000;

/// How often each format is encoded.
const ROUNDS: usize = 5;

/// Records of a run, with sequence numbers from 1 on.
fn batches(records: usize) -> Vec<FlowBatch> {
    let mut batches = traffic::batches(records, ADDRESSES);
    let mut next = 1;
    for batch in &mut batches {
        batch.number_from(next);
        next += batch.rows() as u64;
    }
    batches
}

/// Processor time of all threads, including those that have ended (Linux).
fn cpu() -> Result<Duration, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = text.rsplit_once(')').ok_or("no process")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(10 * ticks))
}

/// Processor time of this thread, to the nanosecond.
fn cpu_of_thread() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[allow(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn monotonic() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// The cost of encoding alone, in each format. Prints the median of five rounds, and the best.
fn print_encoding(
    own: &Records<'_>,
    batches: &[FlowBatch],
    records: usize,
) -> Result<(), Box<dyn Error>> {
    println!(
        "{:32} {:>12} {:>8} {:>10} {:>10}",
        "encoding alone", "M records/s", "best", "bytes", "messages"
    );
    for options in ["", "records=100", "format=json&records=100", "format=arrow"] {
        let mut rates = Vec::new();
        let (mut bytes, mut messages) = (0, 0);
        for _ in 0..ROUNDS {
            let mut encoder = Encoder::new(&format!("kafka://a/t?{options}").parse()?, own)?;
            (bytes, messages) = (0, 0);
            let mut count = |message: Message<'_>| {
                bytes += message.bytes.len();
                messages += 1;
            };
            let start = cpu_of_thread();
            for batch in batches {
                encoder.encode(batch, &mut count);
            }
            encoder.flush(&mut count);
            rates.push(records as f64 / (cpu_of_thread() - start).as_secs_f64() / 1e6);
        }
        rates.sort_by(f64::total_cmp);
        let (median, best) = (rates[ROUNDS / 2], rates[ROUNDS - 1]);
        let size = bytes as f64 / records as f64;
        println!("{options:32} {median:12.2} {best:8.2} {size:10.1} {messages:10}");
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let records: usize = arguments
        .next()
        .map_or(Ok(2_000_000), |text| text.parse())?;
    let schema = traffic::schema();
    let batches = batches(records);
    let identity = Identity::new("benchmark", 1)?;
    let own = Records {
        schema: &schema,
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
            observe_ticks: |place, error| eprintln!("{place}: {error}"),
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
