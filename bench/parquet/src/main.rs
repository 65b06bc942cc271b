// SPDX-License-Identifier: Apache-2.0
//! Our Parquet encoders beside the writer of the parquet crate, in one run.
//!
//! `cargo run --release --manifest-path bench/parquet/Cargo.toml -- RECORDS ADDRESSES ROUNDS`
//!
//! One JSON object a round and way, in nanoseconds for each record: processor time of all threads,
//! and the clock. The ways take turns, so that other load meets all of them:
//!
//! - `ours`: batches of records to a Parquet file in memory, as a run writes it.
//! - `arrays`: batches of records to Arrow, which the crate's writer needs first.
//! - `crate-1`, `crate-2`: these arrays to Parquet by `ArrowWriter`, with data pages of version 1
//!   and 2 (which differ in what follows a full dictionary: plain values, or deltas). To be added
//!   to `arrays`.

#[path = "../../../crates/formats/examples/traffic/mod.rs"]
mod traffic;

use std::error::Error;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use rustix::time::{ClockId, clock_gettime};
use turboflow_formats::{Format, WriteOptions, to_writer};
use turboflow_record::FlowBatch;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Takes bytes and counts them.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicU64>);

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes bytes and keeps them.
#[derive(Clone, Default)]
struct Keeping(Arc<Mutex<Vec<u8>>>);

impl Write for Keeping {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Processor time of all threads, in ns.
fn processor_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn ours(batches: &[Arc<FlowBatch>], format: Format, sink: Box<dyn Write + Send>) -> Outcome<()> {
    let options = WriteOptions::default();
    let mut writer = to_writer(sink, "memory", format, &traffic::schema(), &options)?;
    writer.write_several(batches)?;
    writer.finish()?;
    Ok(())
}

fn theirs(arrays: &[RecordBatch], version: WriterVersion, sink: Counting) -> Outcome<()> {
    let options = WriteOptions::default();
    let properties = WriterProperties::builder()
        .set_writer_version(version)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(options.row_group_records))
        .build();
    let mut writer = ArrowWriter::try_new(sink, arrays[0].schema(), Some(properties))?;
    for batch in arrays {
        writer.write(batch)?;
    }
    writer.close()?;
    Ok(())
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |text| text.parse());
    let (records, addresses, rounds) = (number(2_000_000)?, number(300_000)?, number(5)?);
    let batches: Vec<_> = traffic::batches(records, addresses as u64)
        .into_iter()
        .map(Arc::new)
        .collect();
    let kept = Keeping::default();
    ours(&batches, Format::Arrow, Box::new(kept.clone()))?;
    let stream = kept
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let arrays: Vec<RecordBatch> =
        StreamReader::try_new(&stream[..], None)?.collect::<Result<_, _>>()?;
    for round in 0..rounds {
        for way in ["ours", "arrays", "crate-1", "crate-2"] {
            let sink = Counting::default();
            let (start_ns, start) = (processor_ns(), Instant::now());
            match way {
                "ours" => ours(&batches, Format::Parquet, Box::new(sink.clone()))?,
                "arrays" => ours(&batches, Format::Arrow, Box::new(sink.clone()))?,
                "crate-1" => theirs(&arrays, WriterVersion::PARQUET_1_0, sink.clone())?,
                _ => theirs(&arrays, WriterVersion::PARQUET_2_0, sink.clone())?,
            }
            let of_records = |ns: f64| ns / records as f64;
            println!(
                "{{\"round\":{round},\"way\":\"{way}\",\"processor_ns\":{:.1},\"clock_ns\":{:.1},\"bytes\":{:.2}}}",
                of_records((processor_ns() - start_ns) as f64),
                of_records(start.elapsed().as_nanos() as f64),
                of_records(sink.0.load(Ordering::Relaxed) as f64),
            );
        }
    }
    Ok(())
}
