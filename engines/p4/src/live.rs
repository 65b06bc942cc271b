// SPDX-License-Identifier: Apache-2.0
//! An engine for a pipeline that meters the frames passing through its ports.
//!
//! The pipeline's clock is set to that of this machine, so that its cells are those of the run. The
//! clock of a chip cannot be set, so its times are converted. When a cell is over, the records that
//! no packet displaced are swept out.

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

/// The length of a pipeline's cells, in nanoseconds, unless it was compiled with another length. It
/// is a power of two (2^29), because pipelines can shift but not divide.
pub const LIVE_CELL_NS: u64 = 1 << 29;
/// How long after the end of a cell the pipeline is asked whether the cell is over. Its clock may
/// be behind.
const SLACK_NS: u64 = 10_000_000;
/// If the clock differs by more than this, it is set again.
const MOST_DRIFT_NS: u64 = 5_000_000;
/// The shortest cells that can be swept in time.
const SHORTEST_CELL_NS: u64 = 1 << 25;
/// Number of readings of the pipeline's clock, of which the fastest is used.
const READINGS: usize = 8;
/// The longest pause between two reads of the port.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// Settings of a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct LiveConfig {
    /// Slots of the IPv4 table, and of the IPv6 table: a power of two.
    pub slots: u32,
    /// The length of the run's cells, in nanoseconds. The program's cells may be shorter.
    pub cell_ns: u64,
    /// The seeds of the hash.
    pub seeds: [u64; 2],
    /// Commands that may be under way at the same time. A chip takes more.
    pub window: usize,
    /// Reads the wall clock, in nanoseconds since 1970.
    pub wall_ns: fn() -> u64,
    /// The host's index of the network interface, if the port is one.
    pub interface_index: Option<u32>,
}

/// A pipeline that meters the frames passing through it.
pub struct Live {
    config: LiveConfig,
    link: Link,
    settings: Settings,
    /// The length of the program's cells, in nanoseconds.
    cell_ns: u64,
    started_ns: u64,
    /// This machine's clock at the last look.
    looked_ns: u64,
    /// The end of the pipeline's cell that will be swept next.
    cell_end_ns: u64,
    is_stopped: bool,
    /// Why the pipeline could not be stopped.
    failure: Option<P4Error>,
}

impl Live {
    /// Opens the port, sets seed and clock, and starts to meter.
    ///
    /// # Errors
    /// If the pipeline does not answer, or has another program.
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
        // Removes what an earlier run left.
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

    /// Frames from the port that were not reports.
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

    /// Sets the pipeline's clock if it differs by more than `most_drift_ns`. Returns whether it was
    /// set.
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

    /// The program's number of the cell that ends at this time.
    const fn cell_before(&self, end_ns: u64) -> u32 {
        // Cells count from 1, in 31 bits.
        (end_ns / self.cell_ns) as u32 & (u32::MAX >> 1)
    }

    /// The cell to be swept next is the one in which the pipeline's clock was last read.
    fn begin_cell(&mut self) {
        let cell_ns = self.cell_ns;
        let start_ns = match self.link.receiver.chip() {
            Some(chip) => chip.clock.wall_ns(chip.clock.cell_start_ns(cell_ns)),
            None => self.link.receiver.last_status().now_ns / cell_ns * cell_ns,
        };
        self.cell_end_ns = start_ns.saturating_add(cell_ns);
    }

    /// Sweeps the cell if it is over. Returns the time up to which the run's cells are complete.
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
        // The pipeline's clock decides: no packet of the cell follows an answer with a later time.
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

    /// Sets the pipeline's clock if it has drifted from this machine's. Cells then get other
    /// numbers, so the whole table is swept.
    fn follow_clock(&mut self) -> Result<(), P4Error> {
        if self.set_clock(MOST_DRIFT_NS)? {
            self.link.sweep_all()?;
            self.link.receiver.end_cell();
            self.begin_cell();
        }
        Ok(())
    }

    /// Sweeps the cells of a chip that are over. The chip is asked at each look, because its
    /// counters have 32 bits. Its cells follow its own clock; those of the run begin at multiples
    /// of their length.
    fn sweep_chip_due(&mut self) -> Result<Option<u64>, P4Error> {
        if self.link.status(0)?.now_ns < self.cell_end_ns {
            return Ok(None);
        }
        self.set_clock(MOST_DRIFT_NS)?;
        let cell_ns = self.cell_ns;
        let chip = self.link.receiver.chip();
        let start_ns = chip.map(|chip| chip.clock.cell_start_ns(cell_ns));
        self.begin_cell();
        // Records of other cells than the chip's current one leave.
        self.link.sweep_slots(false)?;
        if let Some(chip) = self.link.receiver.chip_mut() {
            chip.oldest_ns = start_ns;
        }
        self.link.receiver.end_cell();
        let complete_ns = self.cell_end_ns.saturating_sub(cell_ns);
        Ok(Some(self.end_of_runs_cell(complete_ns)))
    }

    /// The end of the run's last cell that is over at this time.
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
            sets_back: false,
            complete_ns,
            has_more: complete_ns.is_some(),
        })
    }

    /// Stops metering (a chip continues), and takes everything out of the table.
    fn stop(&mut self) -> Result<(), P4Error> {
        self.settings.meters = false;
        self.link.configure(&self.settings)?;
        self.link.receiver.is_flushing = true;
        self.link.sweep_all()?;
        self.find_lost_copies()
    }

    /// For a chip whose frames reach the table as copies: finds how many never arrive. Its settings
    /// are sent once more, because that answer has a number, which shows whether the last reports
    /// came.
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

    /// Nothing more will come: hands over what has arrived, and counts what is missing as lost.
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

    fn unread_ether_types(&self) -> Vec<(u16, u64)> {
        self.link.receiver.unread_ether_types()
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
