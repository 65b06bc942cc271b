// SPDX-License-Identifier: Apache-2.0
//! Workloads modelled on published measurements: the traffic of the paper's evaluation (TurboFlow,
//! section 6.2 and Table 6), with births and deaths of flows. Also attacks on meters, and a
//! company's day with incidents to find.
//!
//! Packets come one at a time, as [`Arrival`]s, or as frames. Memory depends on the number of
//! active flows, not on the number of packets. Packets are reproducible by seed.
//!
//! ```
//! use turboflow_workload::workloads::{InternetConfig, Kind, Workload, WorkloadConfig};
//!
//! let kind = Kind::Internet(InternetConfig::default());
//! let config = WorkloadConfig { packets: Some(10_000), ..WorkloadConfig::new(kind) };
//! let mut workload = Workload::new(&config)?;
//! let bytes: u64 = workload.by_ref().map(|packet| u64::from(packet.ip_length_bytes)).sum();
//! assert_eq!(workload.statistics().ip_bytes, bytes);
//! # Ok::<(), turboflow_workload::workloads::WorkloadError>(())
//! ```

mod adversarial;
mod arrival;
mod config;
mod data_center;
mod internet;
mod site;
mod statistics;

pub use adversarial::{ATTACK_IP_BYTES, AdversarialConfig, Attack, COLLIDING_FLOWS_MAX, Placing};
pub use arrival::Arrival;
pub(crate) use config::check_amount;
pub use config::{Kind, WorkloadConfig, WorkloadError};
pub use data_center::{
    ACK_IP_BYTES, AGGREGATION_SWITCHES, DATA_IP_BYTES, DataCenterConfig, FLOW_PACKETS,
    HOST_BITS_PER_SECOND, HOSTS, LOAD, LOAD_MAX, LOAD_MIN, RACKS, Switch,
};
pub use internet::{FLOW_PACKETS_MAX, InternetConfig};
pub use site::{DAY_NS, SITE_START_NS, SeenAt, SiteConfig, incident};
pub use statistics::{Asked, FlowCounts, Statistics};

use crate::traffic::{FrameBuffer, Shape};
use adversarial::Adversarial;
use arrival::{ETHERNET_BYTES, Source};
use data_center::DataCenter;
use internet::Internet;
use site::Site;

#[derive(Clone, Debug)]
enum Traffic {
    Adversarial(Adversarial),
    DataCenter(Box<DataCenter>),
    Internet(Box<Internet>),
    Site(Box<Site>),
}

/// Runs code for any source, compiled once per source instead of dispatched per packet.
macro_rules! with_source {
    ($traffic:expr, $source:ident => $work:expr) => {
        match $traffic {
            Traffic::Adversarial($source) => $work,
            Traffic::DataCenter($source) => $work,
            Traffic::Internet($source) => $work,
            Traffic::Site($source) => $work,
        }
    };
}

/// A generator of packets.
#[derive(Clone, Debug)]
pub struct Workload {
    traffic: Traffic,
    asked: Asked,
    packets_left: u64,
    end_ns: u64,
    snap_bytes: u32,
    statistics: Statistics,
}

impl Workload {
    /// A generator at its first packet.
    ///
    /// # Errors
    /// If the configuration is not valid.
    pub fn new(config: &WorkloadConfig) -> Result<Self, WorkloadError> {
        config.check()?;
        let (start_ns, seed) = (config.start_ns, config.seed);
        let traffic = match config.kind {
            Kind::Adversarial(kind) => Traffic::Adversarial(Adversarial::new(kind, start_ns, seed)),
            Kind::DataCenter(kind) => {
                Traffic::DataCenter(Box::new(DataCenter::new(kind, start_ns, seed)))
            }
            Kind::Internet(kind) => {
                Traffic::Internet(Box::new(Internet::new(kind, start_ns, seed)))
            }
            Kind::Site(kind) => Traffic::Site(Box::new(Site::new(kind, start_ns, seed))),
        };
        let lasts_ns = config.duration_ns.unwrap_or(u64::MAX);
        Ok(Self {
            traffic,
            asked: config.kind.asked(),
            packets_left: config.packets.unwrap_or(u64::MAX),
            end_ns: start_ns.saturating_add(lasts_ns),
            snap_bytes: config.snap_length_bytes.unwrap_or(u32::MAX),
            statistics: Statistics::starting_at(start_ns),
        })
    }

    /// The next packet; `None` after the last.
    #[inline(always)]
    pub fn next_packet(&mut self) -> Option<Arrival> {
        if self.packets_left == 0 {
            return None;
        }
        let end_ns = self.end_ns;
        let arrival = with_source!(&mut self.traffic, source => source.next_arrival(end_ns));
        let Some(arrival) = arrival else {
            self.packets_left = 0;
            return None;
        };
        self.packets_left -= 1;
        self.statistics.add(&arrival);
        Some(arrival)
    }

    /// Replaces the content of `buffer` by the next `frames` frames, or fewer at the end. Returns
    /// their number: 0 after the last packet.
    pub fn fill(&mut self, buffer: &mut FrameBuffer, frames: usize) -> usize {
        buffer.clear();
        let wanted = usize::try_from(self.packets_left).unwrap_or(usize::MAX);
        let wanted = wanted.min(frames);
        let (end_ns, snap_bytes) = (self.end_ns, self.snap_bytes);
        // A local copy of the counters, which the compiler can keep in registers.
        let mut statistics = self.statistics;
        with_source!(&mut self.traffic, source => {
            for _ in 0..wanted {
                let Some(arrival) = source.next_arrival(end_ns) else {
                    break;
                };
                let captured_bytes = push(buffer, &arrival, snap_bytes, statistics.packets);
                statistics.captured_bytes += u64::from(captured_bytes);
                statistics.add(&arrival);
            }
        });
        self.statistics = statistics;
        self.packets_left = match buffer.len() {
            pushed if pushed < wanted => 0,
            pushed => self.packets_left - pushed as u64,
        };
        buffer.len()
    }

    /// Totals of the traffic generated so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics {
            flows: with_source!(&self.traffic, source => source.flow_counts()),
            ..self.statistics
        }
    }

    /// The stated rates.
    #[must_use]
    pub const fn asked(&self) -> &Asked {
        &self.asked
    }
}

impl Iterator for Workload {
    type Item = Arrival;

    #[inline(always)]
    fn next(&mut self) -> Option<Arrival> {
        self.next_packet()
    }
}

/// Appends the frame of a packet. Returns its captured length in bytes.
#[inline(always)]
fn push(buffer: &mut FrameBuffer, arrival: &Arrival, snap_bytes: u32, number: u64) -> u32 {
    let shape = Shape {
        frame_bytes: u32::from(arrival.ip_length_bytes) + ETHERNET_BYTES,
        snap_bytes,
        timestamp_ns: arrival.timestamp_ns,
        number,
    };
    buffer.push(&arrival.headers(), &shape).1
}

#[cfg(test)]
mod tests;
