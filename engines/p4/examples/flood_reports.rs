// SPDX-License-Identifier: Apache-2.0
//! A pipeline behind an interface that evicts records at a steady rate. It measures the speed of a
//! receiver at the other end: `scripts/bench-reports.sh` runs both.
//!
//!   flood_reports IFACE RECORDS_A_SECOND SECONDS FLOWS

use std::error::Error;
use std::time::{Duration, Instant};

use turboflow_capture::live::{Interface, InterfaceConfig, Sender};
use turboflow_engine_p4::P4Record;
use turboflow_merge::Layout;
use turboflow_packet::{Frame, LinkType};
use turboflow_record::Definition;

mod busy;

use busy::{Busy, REPORTS_A_FRAME};

/// Frames that are sent at once.
const FRAMES_AT_ONCE: usize = 32;
/// How long commands are still answered after everything was sent.
const LINGERS: Duration = Duration::from_secs(3);

fn send(sender: &mut Sender, frames: &[Vec<u8>]) -> Result<(), Box<dyn Error>> {
    let frames: Vec<Frame<'_>> = frames
        .iter()
        .map(|bytes| Frame {
            bytes,
            wire_length_bytes: bytes.len() as u32,
            timestamp_ns: 0,
            interface: 0,
            link_type: LinkType::Ethernet,
        })
        .collect();
    let mut rest = &frames[..];
    while !rest.is_empty() {
        let sent = sender.send(rest)?;
        rest = &rest[sent..];
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, name, rate, seconds, flows] = &arguments[..] else {
        return Err("usage: flood_reports IFACE RECORDS_A_SECOND SECONDS FLOWS".into());
    };
    let (rate, seconds): (f64, u64) = (rate.parse()?, seconds.parse()?);
    let definition = Definition::default();
    let layout = Layout::compile(&definition, false)?;
    let mut busy = Busy::new(&P4Record::new(&definition, &layout)?, flows.parse()?);
    let config = InterfaceConfig {
        only_incoming: true,
        latency_ms: Some(1),
        ..InterfaceConfig::default()
    };
    let mut interface = Interface::open(name, &config)?;
    let mut sender = Sender::open(name)?;
    #[allow(clippy::disallowed_methods, reason = "it is a pipeline's clock")]
    let began = Instant::now();
    let mut metered_since: Option<Duration> = None;
    let mut frames = vec![Vec::new(); FRAMES_AT_ONCE];
    let mut stopped_at = None;
    println!("waits on {name}");
    loop {
        let now = began.elapsed();
        let now_ns = now.as_nanos() as u64;
        let mut answers = Vec::new();
        while let Some(batch) = interface.next_batch() {
            let commands = batch.frames().iter();
            answers.extend(commands.filter_map(|command| busy.answer(command.bytes, now_ns)));
        }
        send(&mut sender, &answers)?;
        if busy.meters {
            metered_since.get_or_insert(now);
        }
        let Some(since) = metered_since else { continue };
        let lasts = now - since;
        if !busy.meters || lasts.as_secs() >= seconds {
            let stopped = *stopped_at.get_or_insert_with(|| {
                println!(
                    "{} records sent, {REPORTS_A_FRAME} a frame, {rate} a second",
                    busy.records
                );
                now
            });
            if now - stopped > LINGERS {
                return Ok(());
            }
            continue;
        }
        if (busy.records as f64) < rate * lasts.as_secs_f64() {
            frames
                .iter_mut()
                .for_each(|frame| busy.evict(now_ns, frame));
            send(&mut sender, &frames)?;
        }
    }
}
