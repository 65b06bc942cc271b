// SPDX-License-Identifier: Apache-2.0
//! A pipeline that meters what passes through its ports, as an engine.
//!
//! The pipeline's clock is set to that of this machine, so that its cells are those of the run.
//! That of a chip cannot be set: its times are converted. When a cell is over, what no packet
//! displaced is swept out.

use std::time::Duration;

use turboflow_engine::{
    Abilities, Collected, EngineCounters, EngineError, MicroflowBatch, Port as EnginePort,
    PortCounters, PortState, RemoteEngine,
};
use turboflow_merge::Layout;

use crate::lane::{Settings, list_of};
use crate::link::Link;
use crate::receiver::Receiver;
use crate::{ABILITIES, P4Error, P4Record, Port, StrangeFrames};

/// The length of a pipeline's cells, in nanoseconds, unless it was compiled with others: 2^29, a
/// shift, because pipelines cannot divide.
pub const LIVE_CELL_NS: u64 = 1 << 29;
/// How long after the end of a cell the pipeline is asked whether it is over: its clock may be
/// behind.
const SLACK_NS: u64 = 10_000_000;
/// A clock that differs by more is set again.
const MOST_DRIFT_NS: u64 = 5_000_000;
/// The shortest cells that are swept in time.
const SHORTEST_CELL_NS: u64 = 1 << 25;
/// Readings of the pipeline's clock, of which the fastest counts.
const READINGS: usize = 8;
/// The longest time between two looks at the port.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// How a pipeline is set up.
#[derive(Clone, Copy, Debug)]
pub struct LiveConfig {
    /// Slots of the table for IPv4, and as many for IPv6: a power of two.
    pub slots: u32,
    /// The length of the run's cells, in nanoseconds. The program's may be shorter.
    pub cell_ns: u64,
    /// The seed of the hash.
    pub seeds: [u64; 2],
    /// Commands that may be under way at once, unless the pipeline is a chip, which takes more.
    pub window: usize,
    /// Reads the wall clock, in nanoseconds since 1970.
    pub wall_ns: fn() -> u64,
    /// The host's index of the network interface, if the port is one.
    pub interface_index: Option<u32>,
}

/// A pipeline that meters what passes through it.
pub struct Live {
    config: LiveConfig,
    link: Link,
    settings: Settings,
    /// The length of the program's cells.
    cell_ns: u64,
    started_ns: u64,
    /// This machine's clock when it was looked at last.
    looked_ns: u64,
    /// The end of the pipeline's cell that is swept next.
    cell_end_ns: u64,
    is_stopped: bool,
    /// Why it could not be stopped.
    failure: Option<P4Error>,
}

impl Live {
    /// Opens the port, sets seed and clock, and starts to meter.
    ///
    /// # Errors
    /// The pipeline does not answer, or has another program.
    pub fn open(
        port: Box<dyn Port>,
        record: P4Record,
        layout: &Layout,
        config: &LiveConfig,
    ) -> Result<Self, P4Error> {
        let settings = Settings {
            seeds: config.seeds,
            time_offset_ns: 0,
            slots: config.slots,
            meters: false,
        };
        let receiver = Receiver::new(record, layout);
        let mut link = Link::open(port, receiver, &settings, Some(config.window))?;
        let program_ns = match link.status(0)?.cell_shift {
            0 => return Err(P4Error::OnlyReplay { port: link.name() }),
            shift => 1_u64.checked_shl(shift).unwrap_or(u64::MAX),
        };
        if program_ns > config.cell_ns {
            return Err(P4Error::Cells {
                port: link.name(),
                program_ns,
                wanted_ns: config.cell_ns,
            });
        }
        if program_ns < SHORTEST_CELL_NS {
            return Err(P4Error::ShortCells {
                port: link.name(),
                program_ns,
            });
        }
        let swept_from_ns = link.receiver.chip().map(|chip| chip.clock.now_ns());
        // What an earlier run left.
        link.sweep_all()?;
        let mut live = Self {
            config: *config,
            link,
            settings,
            cell_ns: program_ns,
            started_ns: 0,
            cell_end_ns: 0,
            looked_ns: 0,
            is_stopped: false,
            failure: None,
        };
        live.set_clock(0)?;
        if let Some(chip) = live.link.receiver.chip_mut() {
            chip.oldest_ns = swept_from_ns;
        }
        live.looked_ns = (config.wall_ns)();
        live.started_ns = live.end_of_runs_cell(live.looked_ns);
        live.link
            .receiver
            .hold_from(live.started_ns + config.cell_ns);
        live.link.receiver.begin();
        live.settings.meters = true;
        live.link.configure(&live.settings)?;
        live.begin_cell();
        Ok(live)
    }

    /// Reports that did not arrive, according to their sequence numbers.
    #[must_use]
    pub const fn reports_lost(&self) -> u64 {
        self.link.receiver.reports_lost()
    }

    /// Frames from the port that were no reports.
    #[must_use]
    pub const fn strange_frames(&self) -> StrangeFrames {
        self.link.receiver.strange
    }

    /// How far the pipeline's clock is behind that of this machine, modulo 2^64.
    fn behind_ns(&mut self) -> Result<u64, P4Error> {
        let mut best = (u64::MAX, 0);
        for _ in 0..READINGS {
            let before_ns = (self.config.wall_ns)();
            let status = self.link.status(0)?;
            let took_ns = (self.config.wall_ns)().saturating_sub(before_ns);
            if took_ns < best.0 {
                let middle_ns = before_ns.wrapping_add(took_ns / 2);
                best = (took_ns, middle_ns.wrapping_sub(status.now_ns));
            }
        }
        Ok(best.1)
    }

    /// Sets the pipeline's clock, if it differs by more. Returns whether it did.
    fn set_clock(&mut self, most_drift_ns: u64) -> Result<bool, P4Error> {
        let behind_ns = self.behind_ns()?;
        if behind_ns.cast_signed().unsigned_abs() <= most_drift_ns {
            return Ok(false);
        }
        if let Some(chip) = self.link.receiver.chip_mut() {
            chip.clock.correct(behind_ns);
        } else {
            let offset_ns = &mut self.settings.time_offset_ns;
            *offset_ns = offset_ns.wrapping_add(behind_ns);
            self.link.configure(&self.settings)?;
        }
        Ok(true)
    }

    /// The number that the program gives to the cell that ends at this time.
    const fn cell_before(&self, end_ns: u64) -> u32 {
        // Cells count from 1, in 31 bits.
        (end_ns / self.cell_ns) as u32 & (u32::MAX >> 1)
    }

    /// The cell that is swept next is that in which the pipeline's clock was read last.
    fn begin_cell(&mut self) {
        let cell_ns = self.cell_ns;
        let start_ns = match self.link.receiver.chip() {
            Some(chip) => chip.clock.wall_ns(chip.clock.cell_start_ns(cell_ns)),
            None => self.link.receiver.last_status().now_ns / cell_ns * cell_ns,
        };
        self.cell_end_ns = start_ns.saturating_add(cell_ns);
    }

    /// Sweeps the cell that is over. Returns its end, as far as it is one of the run's.
    fn sweep_due(&mut self) -> Result<Option<u64>, P4Error> {
        if self.link.receiver.chip().is_some() {
            return self.sweep_chip_due();
        }
        let now_ns = (self.config.wall_ns)();
        let is_set_back = now_ns < self.looked_ns;
        self.looked_ns = now_ns;
        if now_ns < self.cell_end_ns + SLACK_NS && !is_set_back {
            return Ok(None);
        }
        // The pipeline's clock decides: no packet of the cell comes behind an answer that is later.
        if self.link.status(0)?.now_ns < self.cell_end_ns {
            self.follow_clock()?;
            return Ok(None);
        }
        let complete_ns = self.cell_end_ns;
        let cell = self.cell_before(complete_ns);
        self.link
            .sweep(list_of(cell), cell.wrapping_add(1), false)?;
        self.link.receiver.end_cell();
        self.cell_end_ns = complete_ns + self.cell_ns;
        if self.cell_end_ns + SLACK_NS > now_ns {
            self.follow_clock()?;
        }
        Ok(Some(self.end_of_runs_cell(complete_ns)))
    }

    /// Sets the pipeline's clock, if this machine's has gone another way. Its cells then have other
    /// numbers: the table is swept as a whole.
    fn follow_clock(&mut self) -> Result<(), P4Error> {
        if self.set_clock(MOST_DRIFT_NS)? {
            self.link.sweep_all()?;
            self.link.receiver.end_cell();
            self.begin_cell();
        }
        Ok(())
    }

    /// Sweeps the cells of a chip that are over. It is asked at each look: its counters have 32
    /// bits. Its cells begin where its clock has them, those of the run at multiples of their
    /// length.
    fn sweep_chip_due(&mut self) -> Result<Option<u64>, P4Error> {
        if self.link.status(0)?.now_ns < self.cell_end_ns {
            return Ok(None);
        }
        self.set_clock(MOST_DRIFT_NS)?;
        let cell_ns = self.cell_ns;
        let chip = self.link.receiver.chip();
        let start_ns = chip.map(|chip| chip.clock.cell_start_ns(cell_ns));
        self.begin_cell();
        // Whatever is of another cell than the chip's leaves.
        self.link.sweep_slots(false)?;
        if let Some(chip) = self.link.receiver.chip_mut() {
            chip.oldest_ns = start_ns;
        }
        self.link.receiver.end_cell();
        let complete_ns = self.cell_end_ns.saturating_sub(cell_ns);
        Ok(Some(self.end_of_runs_cell(complete_ns)))
    }

    /// The end of the last cell of the run that is over at this time.
    const fn end_of_runs_cell(&self, time_ns: u64) -> u64 {
        time_ns / self.config.cell_ns * self.config.cell_ns
    }

    fn take(&mut self, batch: &mut MicroflowBatch) -> Result<Collected, P4Error> {
        if self.is_stopped {
            batch.append(&mut self.link.receiver.batch);
            return Ok(Collected::default());
        }
        self.link.exchange(false)?;
        let complete_ns = self.sweep_due()?;
        batch.append(&mut self.link.receiver.batch);
        if let Some(complete_ns) = complete_ns {
            let next_ns = complete_ns.saturating_add(self.config.cell_ns);
            self.link.receiver.hold_from(next_ns);
        }
        Ok(Collected {
            complete_ns,
            has_more: complete_ns.is_some(),
        })
    }

    /// Stops to meter, which a chip does not, and takes everything out of the table.
    fn stop(&mut self) -> Result<(), P4Error> {
        self.settings.meters = false;
        self.link.configure(&self.settings)?;
        self.link.receiver.is_flushing = true;
        self.link.sweep_all()?;
        self.find_lost_copies()
    }

    /// Of a chip whose frames come to the table as copies: how many do not. Its settings are set
    /// once more, because that answer has a number, and shows whether the last reports came.
    fn find_lost_copies(&mut self) -> Result<(), P4Error> {
        let Some(chip) = self.link.receiver.chip_mut() else {
            return Ok(());
        };
        chip.copies.settle();
        for _ in 0..READINGS {
            self.link.status(0)?;
        }
        self.link.configure(&self.settings).map(drop)
    }

    /// Nothing more comes: what has come is handed over, and what is missing is lost.
    fn settle(&mut self) {
        self.is_stopped = true;
        self.link.receiver.hold_from(u64::MAX);
        self.link.receiver.end_cell();
        self.link.receiver.settle();
    }
}

impl RemoteEngine for Live {
    fn abilities(&self) -> &Abilities {
        &ABILITIES
    }

    fn started_ns(&self) -> u64 {
        self.started_ns
    }

    fn collect(&mut self, batch: &mut MicroflowBatch) -> Result<Collected, EngineError> {
        let taken = match self.failure.take() {
            Some(error) => Err(error),
            None => self.take(batch),
        };
        if taken.is_err() {
            self.settle();
            batch.append(&mut self.link.receiver.batch);
        }
        taken.map_err(EngineError::new)
    }

    fn longest_pause(&self) -> Duration {
        LONGEST_PAUSE
    }

    fn counters(&mut self) -> Result<EngineCounters, EngineError> {
        Ok(self.link.receiver.counters())
    }

    fn ports(&mut self) -> Result<Vec<EnginePort>, EngineError> {
        let counters = self.link.receiver.counters();
        let lost = self.link.receiver.frames_lost();
        let delivered = counters.packets_received;
        Ok(vec![EnginePort {
            name: self.link.name(),
            state: PortState::Up,
            interface_index: self.config.interface_index,
            counters: PortCounters {
                seen: delivered + lost,
                dropped: lost,
                delivered,
                delivered_bytes: counters.bytes_received,
                ..PortCounters::default()
            },
        }])
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        if !self.is_stopped {
            // The last records are collected first.
            self.failure = self.stop().err();
            self.settle();
        }
        Ok(())
    }
}
