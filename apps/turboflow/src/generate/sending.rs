// SPDX-License-Identifier: Apache-2.0
//! Sends frames out of an interface at their times.

use std::time::{Duration, Instant};

use turboflow_capture::live::Sender;
use turboflow_packet::Frame;
use turboflow_workload::traffic::FrameBuffer;

use super::args::Speed;
use super::{FRAMES_AT_ONCE, GenerateArgs, Generator, report};
use crate::exit::Outcome;
use crate::log::say;
use crate::signals::{self, STOP};

/// Waits above this sleep; shorter ones spin, because a sleep can be late by about this much.
const SLEEP_FROM_NS: u64 = 200_000;
/// The longest sleep, so that Ctrl-C is noticed.
const SLEEP_AT_MOST_NS: u64 = 50_000_000;

/// Totals of the frames sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Time from the first packet to the last.
    pub(super) took_ns: u64,
    /// The time it should have taken; 0 at maximum speed.
    pub(super) asked_ns: u64,
    /// Number of times the interface accepted nothing.
    pub(super) waits: u64,
}

impl Sent {
    /// Whether the rate is off by more than 1 %, not counting a short time at the start.
    pub(super) fn misses_the_rate(&self) -> bool {
        const MOMENT_NS: u64 = 10_000_000;
        self.asked_ns > 0 && self.took_ns > self.asked_ns + self.asked_ns / 100 + MOMENT_NS
    }
}

/// The time since the first packet.
struct Pace {
    start: Instant,
    first_ns: u64,
    speed: Speed,
}

impl Pace {
    #[expect(clippy::disallowed_methods, reason = "packets are sent by the clock")]
    fn from(first_ns: u64, speed: Speed) -> Self {
        Self {
            start: Instant::now(),
            first_ns,
            speed,
        }
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// The time at which a frame is due.
    fn due_ns(&self, frame: &Frame<'_>) -> u64 {
        let own_ns = frame.timestamp_ns - self.first_ns;
        match self.speed {
            Speed::Times(factor) => (own_ns as f64 / factor) as u64,
            Speed::Max => 0,
        }
    }
}

/// Sends all frames of the generator, and reports the rate.
pub(super) fn run(
    args: &GenerateArgs,
    name: &str,
    generator: &mut dyn Generator,
) -> anyhow::Result<Outcome> {
    let mut sender = Sender::open(name)?;
    signals::listen("stopping", false, None)?;
    let sent = send(
        generator,
        &mut sender,
        args.speed.unwrap_or(Speed::Times(1.0)),
    )?;
    if !args.quiet {
        let (report, rate) = (generator.report(args.seed), report::of_sending(name, &sent));
        say!(Info Generated; "{report}\n{rate}");
    }
    if sent.misses_the_rate() {
        say!(Warning RateMissed; "interface {name} took the packets too slowly: it or this machine \
            cannot reach the rate asked for; lower the rate, or slow down with --speed");
        return Ok(Outcome::Lossy);
    }
    Ok(Outcome::Well)
}

fn send(generator: &mut dyn Generator, sender: &mut Sender, speed: Speed) -> anyhow::Result<Sent> {
    let mut buffer = FrameBuffer::with_capacity(FRAMES_AT_ONCE, 64);
    let mut sent = Sent::default();
    let mut pace = None;
    while generator.fill(&mut buffer, FRAMES_AT_ONCE)? > 0 && !STOP.asked() {
        let frames: Vec<Frame<'_>> = buffer.frames().collect();
        let pace = pace.get_or_insert_with(|| Pace::from(frames[0].timestamp_ns, speed));
        send_batch(&frames, pace, sender, &mut sent)?;
    }
    sent.waits = sender.waits();
    Ok(sent)
}

fn send_batch(
    frames: &[Frame<'_>],
    pace: &Pace,
    sender: &mut Sender,
    sent: &mut Sent,
) -> anyhow::Result<()> {
    let mut left = frames;
    while let Some(next) = left.first() {
        if STOP.asked() {
            break;
        }
        let now_ns = pace.now_ns();
        let due = left.partition_point(|frame| pace.due_ns(frame) <= now_ns);
        if due == 0 {
            wait(pace.due_ns(next) - now_ns);
            continue;
        }
        let count = sender.send(&left[..due])?;
        let (gone, rest) = left.split_at(count);
        sent.packets += count as u64;
        sent.bytes += gone
            .iter()
            .map(|frame| frame.bytes.len() as u64)
            .sum::<u64>();
        if let Some(last) = gone.last() {
            sent.asked_ns = pace.due_ns(last);
            sent.took_ns = pace.now_ns();
        }
        left = rest;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "packets are sent by the clock")]
fn wait(for_ns: u64) {
    if for_ns < SLEEP_FROM_NS {
        std::hint::spin_loop();
    } else {
        let early_ns = for_ns - SLEEP_FROM_NS / 2;
        std::thread::sleep(Duration::from_nanos(early_ns.min(SLEEP_AT_MOST_NS)));
    }
}
