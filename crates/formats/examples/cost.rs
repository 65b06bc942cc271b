// SPDX-License-Identifier: Apache-2.0
//! The cost of a record of the default definition in each format, in nanoseconds and in bytes.
//!
//! `cargo run --release -p turboflow-formats --example cost [RECORDS] [ADDRESSES] [DIRECTORY]`

mod traffic;

use std::error::Error;
use std::path::PathBuf;

use traffic::{batches, schema};
use turboflow_formats::{Compression, Format, ReadError, WriteOptions, create, read};

/// CPU time of this thread in nanoseconds, independent of other load (Linux).
fn cpu_ns() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().unwrap_or_default().parse()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |text| text.parse());
    let (records, addresses) = (number(1_000_000)?, number(300_000)?);
    let directory = arguments
        .next()
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let batches = batches(records, addresses as u64);
    let zstd = |level| Compression::Zstd { level };
    let cases = [
        ("csv", Format::Csv, zstd(1)),
        ("jsonl", Format::JsonLines, zstd(1)),
        (
            "parquet, not compressed",
            Format::Parquet,
            Compression::None,
        ),
        ("parquet, snappy", Format::Parquet, Compression::Snappy),
        ("parquet, zstd 1", Format::Parquet, zstd(1)),
        ("parquet, zstd 3", Format::Parquet, zstd(3)),
    ];
    for (name, format, compression) in cases {
        let path = directory.join(format!("turboflow-cost.{format}"));
        let options = WriteOptions {
            compression,
            ..WriteOptions::default()
        };
        let start = cpu_ns()?;
        let mut writer = create(&path, format, &schema(), &options)?;
        for batch in &batches {
            writer.write(batch)?;
        }
        let summary = writer.finish()?;
        let ns_per_record = (cpu_ns()? - start) as f64 / records as f64;
        let bytes_per_record = summary.bytes as f64 / records as f64;
        let start = cpu_ns()?;
        let read_back: usize = read(&path)?
            .map(|batch| Ok(batch?.rows()))
            .sum::<Result<_, ReadError>>()?;
        assert_eq!(read_back, records, "what was written is read");
        let read_ns = (cpu_ns()? - start) as f64 / records as f64;
        println!(
            "{name:24} {ns_per_record:7.1} ns/record {bytes_per_record:7.1} bytes/record, \
             {read_ns:7.1} ns/record to read"
        );
    }
    Ok(())
}
