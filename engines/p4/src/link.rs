// SPDX-License-Identifier: Apache-2.0
//! The port and what it receives: commands with their answers, and sweeps of the table.

use std::ops::Range;

use crate::lane::{FLAG_ALL, FLAG_RESET, FLAG_SLOT, Kind, Lane, Settings, list_of};
use crate::receiver::Receiver;
use crate::report::Status;
use crate::{P4Error, Port};

/// Commands between two reads of the port, if the port reports itself when it is full.
const COMMANDS_A_TURN: usize = 256;
/// Commands that may be under way to a chip, whose queues have room for more.
const WINDOW_OF_CHIP: usize = 1024;
/// A chip's slots have numbers of 16 bits.
const PLACES_OF_CHIP: u32 = 1 << 16;
/// The largest table of any switch, in slots.
const MOST_SLOTS: u32 = 1 << 24;
/// Number of times that a command without an answer is sent.
const TRIES: u32 = 20;

/// The port and what it receives.
pub(crate) struct Link {
    port: Box<dyn Port>,
    pub(crate) receiver: Receiver,
    /// Commands that may be under way at the same time. `None`: the port reports itself when it is
    /// full.
    window: Option<usize>,
    /// The slots of each table.
    slots: u32,
    /// The number of the last command that expects an answer.
    token: u64,
    under_way: usize,
}

impl Link {
    /// Opens the port. The program there must have the records that `receiver` expects.
    pub(crate) fn open(
        port: Box<dyn Port>,
        receiver: Receiver,
        settings: &Settings,
        window: Option<usize>,
    ) -> Result<Self, P4Error> {
        let wanted = receiver.program_id();
        let mut link = Self {
            port,
            receiver,
            window,
            slots: 0,
            token: 0,
            under_way: 0,
        };
        let status = link.configure(settings)?;
        if status.program_id != wanted {
            return Err(P4Error::Definition {
                port: link.name(),
                found: status.program_id,
                wanted,
            });
        }
        if !link.receiver.set_words() {
            return Err(P4Error::Words {
                port: link.name(),
                bits: status.word_bits,
            });
        }
        if link.receiver.chip().is_some() {
            link.window = Some(WINDOW_OF_CHIP);
        }
        link.slots = status.slots;
        if status.slots > MOST_SLOTS {
            return Err(P4Error::TooManySlots {
                port: link.name(),
                slots: status.slots,
                most: MOST_SLOTS,
            });
        }
        if status.slots < settings.slots {
            return Err(P4Error::Slots {
                port: link.name(),
                room: status.slots,
                wanted: settings.slots,
            });
        }
        Ok(link)
    }

    pub(crate) fn name(&self) -> String {
        self.port.name().to_owned()
    }

    pub(crate) fn longest_frame_bytes(&self) -> usize {
        self.port.longest_frame_bytes()
    }

    /// Sends what is queued, and takes what has arrived.
    pub(crate) fn exchange(&mut self, wait: bool) -> Result<(), P4Error> {
        let Self { port, receiver, .. } = self;
        match port.exchange(wait, &mut |frame| receiver.take(frame)) {
            Ok(true) if receiver.has_restarted => Err(P4Error::Restarted { port: self.name() }),
            Ok(true) => Ok(()),
            Ok(false) => Err(P4Error::Ended { port: self.name() }),
            Err(source) => Err(P4Error::Port {
                port: self.name(),
                source,
            }),
        }
    }

    /// Sends a command and waits for its status. If the command or its answer is lost, the command
    /// is repeated: executing it twice does no harm.
    fn ask(
        &mut self,
        kind: Kind,
        flags: u8,
        argument: u32,
        behind: &[u8],
    ) -> Result<Status, P4Error> {
        self.token += 1;
        let lane = Lane {
            argument,
            time_ns: self.token,
            ..Lane::command(kind, flags, 0)
        };
        for _ in 0..TRIES {
            self.port.send(&[&lane.bytes(), behind]);
            loop {
                let came = self.receiver.reports();
                self.exchange(true)?;
                if let Some(status) = self.receiver.answer(self.token) {
                    self.under_way = 0;
                    return Ok(status);
                }
                if self.receiver.reports() == came {
                    break;
                }
            }
        }
        Err(P4Error::NoAnswer { port: self.name() })
    }

    /// Sets the seed, the size of the table, and the clock.
    pub(crate) fn configure(&mut self, settings: &Settings) -> Result<Status, P4Error> {
        self.ask(Kind::Settings, 0, 0, &settings.bytes())
    }

    pub(crate) fn status(&mut self, flags: u8) -> Result<Status, P4Error> {
        self.ask(Kind::Status, flags, 0, &[])
    }

    /// Sends a frame, or a command without an answer. Waits if too many are under way.
    pub(crate) fn send(&mut self, lane: &Lane, frame: &[u8]) -> Result<(), P4Error> {
        self.port.send(&[&lane.bytes(), frame]);
        self.under_way += 1;
        match self.window {
            Some(window) if self.under_way >= window => self.status(0).map(drop),
            None if self.under_way >= COMMANDS_A_TURN => {
                self.under_way = 0;
                self.exchange(false)
            }
            _ => Ok(()),
        }
    }

    /// Sweeps all records out of the table, whatever their cell.
    pub(crate) fn sweep_all(&mut self) -> Result<(), P4Error> {
        if !self.last_status().has(Status::LISTS) {
            return self.sweep_slots(true);
        }
        [0, 1]
            .into_iter()
            .try_for_each(|cell| self.sweep(list_of(cell), cell, true))
    }

    /// Sweeps every slot of a program that keeps no list.
    pub(crate) fn sweep_slots(&mut self, all: bool) -> Result<(), P4Error> {
        let flags = FLAG_SLOT | if all { FLAG_ALL } else { 0 };
        let tables = if self.last_status().has(Status::NO_V6) {
            1
        } else {
            2
        };
        let slots = 0..self.slots.saturating_mul(tables).min(PLACES_OF_CHIP);
        self.sweep_places(slots.clone(), flags, 0)?;
        if all {
            // Again, because the loss of commands cannot be detected.
            self.sweep_places(slots, flags, 0)?;
        }
        Ok(())
    }

    /// Sweeps the slots of a list until it is empty. Records of `cell` stay, unless `all` is set.
    pub(crate) fn sweep(&mut self, list: u8, cell: u32, all: bool) -> Result<(), P4Error> {
        let flags = if all { FLAG_ALL | list } else { list };
        let places = self.slots.saturating_mul(2);
        let mut swept = 0;
        let mut listed = self.status(list)?.listed;
        for _ in 0..TRIES {
            if listed <= places {
                self.sweep_places(swept..listed, flags, cell)?;
            } else {
                // The list was full, and some slots are not in it: all slots are swept.
                self.sweep_places(0..places, flags | FLAG_SLOT, cell)?;
            }
            swept = listed;
            // If slots were added meanwhile, the list stays as it is.
            let answer = self.ask(Kind::Status, list | FLAG_RESET, listed, &[])?;
            listed = answer.listed;
            if listed == swept {
                return Ok(());
            }
        }
        Err(P4Error::NoAnswer { port: self.name() })
    }

    fn sweep_places(&mut self, places: Range<u32>, flags: u8, cell: u32) -> Result<(), P4Error> {
        let mut before = self.last_status().sweeps;
        for _ in 0..TRIES {
            for place in places.clone() {
                let lane = Lane {
                    argument: place,
                    ..Lane::command(Kind::Sweep, flags, cell)
                };
                self.send(&lane, &[])?;
            }
            // Commands may be lost too. Sweeping a slot twice does no harm.
            let now = self.status(0)?.sweeps;
            let have_come = now.wrapping_sub(before) >= places.len() as u64;
            // A chip does not count sweeps.
            if have_come || self.receiver.chip().is_some() {
                return Ok(());
            }
            before = now;
        }
        Err(P4Error::NoAnswer { port: self.name() })
    }

    const fn last_status(&self) -> &Status {
        self.receiver.last_status()
    }
}
