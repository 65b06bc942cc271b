// SPDX-License-Identifier: Apache-2.0
//! Measures the walk over a capture, in nanoseconds per packet:
//! `cargo run --release --example walk_speed -- [FILE [BATCH [ROUNDS]]]`.
//! Without a file it writes captures of 60-byte and 1,500-byte packets to the temporary folder.
#![allow(clippy::disallowed_methods, reason = "this measures time")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use turboflow_capture::write::{InterfaceOptions, PcapWriter, PcapngWriter};
use turboflow_capture::{ByteOrder, CaptureFile};
use turboflow_packet::LinkType;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let batch = arguments.get(1).map_or(Ok(256), |batch| batch.parse())?;
    let rounds = arguments.get(2).map_or(Ok(5), |rounds| rounds.parse())?;
    if let Some(path) = arguments.first() {
        return measure(Path::new(path), batch, rounds);
    }
    resident(batch)?;
    for (packets, bytes) in [(8_000_000_u64, 60_usize), (500_000, 1500)] {
        for path in [write_pcap(packets, bytes)?, write_pcapng(packets, bytes)?] {
            measure(&path, batch, rounds)?;
        }
    }
    Ok(())
}

fn measure(path: &Path, batch: usize, rounds: u32) -> Result<(), Box<dyn std::error::Error>> {
    for touch in [false, true] {
        let mut best_ns = f64::INFINITY;
        let (mut sum, mut sum_of_packets) = (0_u64, 0_u64);
        let before = processor_ticks().unwrap_or_default();
        for _ in 0..rounds {
            let start = Instant::now();
            let mut file = CaptureFile::open(path)?;
            while let Some(batch) = file.next_batch(batch)? {
                for frame in batch.frames() {
                    sum = sum.wrapping_add(frame.timestamp_ns);
                    if touch {
                        sum = sum.wrapping_add(frame.bytes.get(26).copied().unwrap_or(0).into());
                    }
                }
            }
            let packets = file.counters().packets.max(1);
            sum_of_packets += packets;
            best_ns = best_ns.min(start.elapsed().as_nanos() as f64 / packets as f64);
        }
        if let Some((user, system)) = processor_ticks() {
            let packets = sum_of_packets.max(1) as f64;
            let (user, system) = (user - before.0, system - before.1);
            print!(
                "[user {:.2} + system {:.2} ns/packet on average] ",
                user / packets,
                system / packets
            );
        }
        let what = if touch {
            "walk and touch byte 26"
        } else {
            "walk"
        };
        println!(
            "{}: {what}: {best_ns:.2} ns/packet (checksum {sum:x})",
            path.display()
        );
    }
    Ok(())
}

/// The walk over bytes in the L2 cache: its cost without memory.
fn resident(batch: usize) -> Result<(), Box<dyn std::error::Error>> {
    const PACKETS: u64 = 10_000;
    let mut writer = PcapWriter::new(Vec::new(), LinkType::Ethernet)?;
    for number in 0..PACKETS {
        writer.write(number, &[0; 60], 60)?;
    }
    let bytes = writer.finish()?;
    let mut best_ns = f64::INFINITY;
    let mut sum = 0_u64;
    for _ in 0..200 {
        let mut file = CaptureFile::from_bytes("resident".to_owned(), bytes.clone())?;
        let start = Instant::now();
        while let Some(batch) = file.next_batch(batch)? {
            sum = batch
                .frames()
                .iter()
                .fold(sum, |sum, frame| sum ^ frame.timestamp_ns);
        }
        best_ns = best_ns.min(start.elapsed().as_nanos() as f64 / PACKETS as f64);
    }
    println!("resident: {best_ns:.2} ns/packet (checksum {sum:x})");
    Ok(())
}

/// Processor time used so far, in nanoseconds, in user space and in the kernel. Unlike wall time it
/// does not include other programs on the machine.
fn processor_ticks() -> Option<(f64, f64)> {
    const TICK_NS: f64 = 10_000_000.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? * TICK_NS, next()? * TICK_NS))
}

fn write_pcap(packets: u64, bytes: usize) -> std::io::Result<PathBuf> {
    let path = std::env::temp_dir().join(format!("walk-{bytes}.pcap"));
    let start = Instant::now();
    let mut writer = PcapWriter::new(File::create(&path)?, LinkType::Ethernet)?;
    let content = vec![0x45; bytes];
    for number in 0..packets {
        writer.write(number * 1_000, &content, bytes as u32)?;
    }
    writer.finish()?;
    let ns = start.elapsed().as_nanos() as f64 / packets as f64;
    println!("{}: written, {ns:.1} ns/packet", path.display());
    Ok(path)
}

fn write_pcapng(packets: u64, bytes: usize) -> std::io::Result<PathBuf> {
    let path = std::env::temp_dir().join(format!("walk-{bytes}.pcapng"));
    let file = std::io::BufWriter::with_capacity(1 << 18, File::create(&path)?);
    let mut writer = PcapngWriter::new(file, ByteOrder::Little)?;
    let options = InterfaceOptions {
        resolution: Some(9),
        ..InterfaceOptions::default()
    };
    writer.add_interface(LinkType::Ethernet, options)?;
    let content = vec![0x45; bytes];
    for number in 0..packets {
        writer.write(0, number * 1_000, &content, bytes as u32)?;
    }
    writer.finish()?;
    Ok(path)
}
