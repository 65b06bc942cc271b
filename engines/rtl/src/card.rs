// SPDX-License-Identifier: Apache-2.0
//! Simulated whole cards: the parser and both meters in the box of a shell (`rtl/tf_opennic.sv`,
//! `rtl/tf_corundum.sv`). Frames arrive at the port, and packets reach the host.

use std::ffi::c_void;
use std::ptr::NonNull;

use turboflow_merge::KeyHasher;

use crate::built::{METER_V4, METER_V6};
use crate::frames::{Given, GivenFrame, Handed, given};
use crate::meter::registers_of;
use crate::parser::Pace;
use crate::size::LineConfig;

/// Registers of the card, as in `rtl/tf_card.sv`.
const ENDS: u32 = 0x008;
const END_NS: u32 = 0x010;
const COUNTERS: u32 = 0x100;
const HANDED: u32 = 0x140;
/// Addresses of the meters' register windows.
const METERS: [u32; 2] = [0x1000, 0x2000];

/// Number of clocks within which a host that is always ready receives something, if the card has
/// anything to send.
const PAUSE: u64 = 2_048;

/// Bytes of the Ethernet header before each message from Corundum's card.
const ETHERNET_BYTES: usize = 14;
/// Bytes of the beat before a frame that the host gets whole, and the magic number in it.
const ASIDE_BYTES: usize = 64;
const ASIDE_MAGIC: [u8; 2] = [0x74, 0x67];

/// The shell that the card is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// The user box of OpenNIC: frames wait while the card cannot take them.
    OpenNic,
    /// The application block of Corundum: the card cannot make frames wait, and counts those
    /// that it leaves out.
    Corundum,
}

/// What the host gets from a card, in addition to the frames that pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPacket {
    /// A message of the wire form.
    Message(Vec<u8>),
    /// A frame that the card does not meter.
    Whole {
        /// Why the card does not meter it.
        reason: Handed,
        /// The frame, with its time.
        frame: GivenFrame,
    },
}

/// The counters of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CardCounters {
    /// Frames that passed.
    pub packets_received: u64,
    /// Frames that passed and for which the card had no room.
    pub packets_dropped: u64,
    /// Frames for the host that were lost before they were sent.
    pub handed_dropped: u64,
    /// Metered packets that declare more bytes than their frame has.
    pub packets_longer_than_frame: u64,
    /// Frames that were given to the meters.
    pub packets_metered: u64,
    /// Frames for the host, in the order of [`Handed::ALL`].
    pub handed: [u64; Handed::ALL.len()],
}

type New = unsafe extern "C" fn(u32) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Write = unsafe extern "C" fn(*mut c_void, u32, u32);
type Read = unsafe extern "C" fn(*mut c_void, u32) -> u32;
type Run = unsafe extern "C" fn(*mut c_void, *const u8, *const Given, usize, u32, u32, u64) -> u64;
type Wrong = unsafe extern "C" fn(*const c_void) -> u32;
type Take = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize) -> usize;

/// The functions of one translated top.
#[derive(Clone, Copy)]
struct Functions {
    new: New,
    free: Free,
    write: Write,
    read: Read,
    run: Run,
    wrong: Wrong,
    take: Take,
}

macro_rules! card_functions {
    ($functions:ident: $new:ident, $free:ident, $write:ident, $read:ident, $run:ident,
     $wrong:ident, $take:ident) => {
        unsafe extern "C" {
            fn $new(seed: u32) -> *mut c_void;
            fn $free(card: *mut c_void);
            fn $write(card: *mut c_void, address: u32, value: u32);
            fn $read(card: *mut c_void, address: u32) -> u32;
            fn $run(
                card: *mut c_void,
                bytes: *const u8,
                frames: *const Given,
                count: usize,
                given_of_256: u32,
                host_of_256: u32,
                more: u64,
            ) -> u64;
            fn $wrong(card: *const c_void) -> u32;
            fn $take(card: *mut c_void, which: u32, to: *mut u8, room: usize) -> usize;
        }

        const $functions: Functions = Functions {
            new: $new,
            free: $free,
            write: $write,
            read: $read,
            run: $run,
            wrong: $wrong,
            take: $take,
        };
    };
}

card_functions!(
    OF_OPENNIC: tf_opennic_new,
    tf_opennic_free,
    tf_opennic_write,
    tf_opennic_read,
    tf_opennic_run,
    tf_opennic_wrong,
    tf_opennic_take
);
card_functions!(
    OF_CORUNDUM: tf_corundum_new,
    tf_corundum_free,
    tf_corundum_write,
    tf_corundum_read,
    tf_corundum_run,
    tf_corundum_wrong,
    tf_corundum_take
);

/// A simulated card.
pub struct VerilatedCard {
    shell: Shell,
    functions: Functions,
    card: NonNull<c_void>,
}

// SAFETY: the simulated card is used by one thread at a time, through `&mut self`, and has no
// thread-local state.
unsafe impl Send for VerilatedCard {}

impl Drop for VerilatedCard {
    fn drop(&mut self) {
        // SAFETY: the card was made by `new` and is not used afterwards.
        unsafe { (self.functions.free)(self.card.as_ptr()) }
    }
}

impl VerilatedCard {
    /// A running card, whose registers have been written. Its meters have the engine ids
    /// `engine_id` (IPv4) and `engine_id + 1` (IPv6).
    ///
    /// # Panics
    /// If memory is exhausted.
    #[must_use]
    pub fn new(shell: Shell, seed: u64, engine_id: u32) -> Self {
        let functions = match shell {
            Shell::OpenNic => OF_OPENNIC,
            Shell::Corundum => OF_CORUNDUM,
        };
        // SAFETY: the function takes any number.
        let card = unsafe { (functions.new)(seed as u32) };
        let card = NonNull::new(card).expect("the shim throws where memory is exhausted");
        let mut card = Self {
            shell,
            functions,
            card,
        };
        for ((window, build), id) in METERS
            .into_iter()
            .zip([METER_V4, METER_V6])
            .zip(engine_id..)
        {
            let mut size = build.size();
            // As in `BLOCKS` in `src/built.rs`.
            size.stages = 1;
            let config = LineConfig::new(build, size, KeyHasher::new(seed));
            for (address, value) in registers_of(&config, id) {
                card.write(window + address, value);
            }
        }
        card
    }

    fn write(&mut self, address: u32, value: u32) {
        // SAFETY: the card was made by `new`, and only this thread uses it.
        unsafe { (self.functions.write)(self.card.as_ptr(), address, value) }
    }

    fn counter(&mut self, address: u32) -> u64 {
        // SAFETY: as above. The low word first: reading it latches the high one.
        let [low, high] = [address, address + 4]
            .map(|address| unsafe { (self.functions.read)(self.card.as_ptr(), address) });
        u64::from(low) | u64::from(high) << 32
    }

    /// Lets frames arrive, each with its time. The pace applies to the host too. Returns the number
    /// of clocks that it took.
    pub fn arrive(&mut self, frames: &[GivenFrame], pace: Pace) -> u64 {
        let (bytes, frames) = given(frames);
        // SAFETY: the card was made by `new`, and only this thread uses it. It reads as many bytes
        // as the frames declare.
        unsafe {
            (self.functions.run)(
                self.card.as_ptr(),
                bytes.as_ptr(),
                frames.as_ptr(),
                frames.len(),
                pace.given_of_256,
                pace.ready_of_256,
                0,
            )
        }
    }

    /// Ends the last cell, and waits until everything has reached the host.
    pub fn end(&mut self, end_ns: u64) {
        // Packets still in the card belong to this cell, so they come out first.
        self.drain();
        self.write(END_NS, end_ns as u32);
        self.write(END_NS + 4, (end_ns >> 32) as u32);
        self.write(ENDS, 1);
        self.drain();
    }

    /// Runs until nothing more comes.
    fn drain(&mut self) {
        let sizes = |card: &Self| [0, 1, 2].map(|which| card.size(which));
        let mut before = None;
        while before != Some(sizes(self)) {
            before = Some(sizes(self));
            // SAFETY: as in `arrive`; without a frame, nothing is read.
            unsafe {
                (self.functions.run)(
                    self.card.as_ptr(),
                    std::ptr::null(),
                    std::ptr::null(),
                    0,
                    256,
                    256,
                    PAUSE,
                );
            }
        }
    }

    /// The counters of the card.
    pub fn counters(&mut self) -> CardCounters {
        let mut handed = [0; Handed::ALL.len()];
        for (value, reason) in handed.iter_mut().zip(Handed::ALL) {
            *value = self.counter(HANDED + 8 * reason as u32);
        }
        CardCounters {
            packets_received: self.counter(COUNTERS),
            packets_dropped: self.counter(COUNTERS + 8),
            handed_dropped: self.counter(COUNTERS + 16),
            packets_longer_than_frame: self.counter(COUNTERS + 24),
            packets_metered: self.counter(HANDED),
            handed,
        }
    }

    /// The frames that passed since the last call, at the point where the card watches them, if
    /// that is not on their way to the host.
    ///
    /// # Panics
    /// If the simulated card returns cut packets.
    pub fn tapped(&mut self) -> Vec<Vec<u8>> {
        self.take(1)
    }

    /// The frames that passed since the last call and reached the host.
    ///
    /// # Panics
    /// If the simulated card returns cut packets.
    pub fn passed(&mut self) -> Vec<Vec<u8>> {
        self.take(0)
    }

    /// What the card itself sent to the host since the last call.
    ///
    /// # Panics
    /// If a packet is neither a message nor a frame after its own beat, or has a wrong size.
    pub fn said(&mut self) -> Vec<HostPacket> {
        // SAFETY: the card was made by `new`.
        let wrong = unsafe { (self.functions.wrong)(self.card.as_ptr()) };
        assert_eq!(wrong, 0, "packets whose size is not the one that they say");
        let skipped = match self.shell {
            Shell::OpenNic => 0,
            Shell::Corundum => ETHERNET_BYTES,
        };
        let packets = self.take(2);
        packets
            .iter()
            .map(|packet| host_packet(&packet[skipped..]))
            .collect()
    }

    /// Number of bytes collected of a stream.
    fn size(&self, which: u32) -> usize {
        // SAFETY: the card was made by `new`; without room, nothing is written.
        unsafe { (self.functions.take)(self.card.as_ptr(), which, std::ptr::null_mut(), 0) }
    }

    fn take(&mut self, which: u32) -> Vec<Vec<u8>> {
        let size = self.size(which);
        let mut bytes = vec![0; size];
        // SAFETY: as above; it writes `size` bytes.
        unsafe { (self.functions.take)(self.card.as_ptr(), which, bytes.as_mut_ptr(), size) };
        let (mut packets, mut rest) = (Vec::new(), &bytes[..]);
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (packet, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
            packets.push(packet.to_vec());
            rest = behind;
        }
        packets
    }
}

/// The content of a packet that the card sent.
fn host_packet(packet: &[u8]) -> HostPacket {
    if packet[..2] != ASIDE_MAGIC {
        return HostPacket::Message(packet.to_vec());
    }
    let (head, bytes) = packet.split_at(ASIDE_BYTES);
    let length = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    assert_eq!(length as usize, bytes.len(), "the frame is as long as said");
    let time_ns = head[8..16]
        .iter()
        .fold(0, |time_ns, byte| time_ns << 8 | u64::from(*byte));
    HostPacket::Whole {
        reason: Handed::of_number(head[3]).expect("a frame for the host has a reason"),
        frame: GivenFrame {
            bytes: bytes.to_vec(),
            time_ns,
            ..GivenFrame::default()
        },
    }
}
