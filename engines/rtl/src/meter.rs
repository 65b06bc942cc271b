// SPDX-License-Identifier: Apache-2.0
//! A simulated line with its egress and registers (`rtl/tf_meter.sv`), as seen by a card's host:
//! packet descriptors go in, message bytes come out.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::built::METER_V6;
use crate::line::{Arrival, Step};
use crate::size::LineConfig;

/// 32-bit words of a descriptor: a beat of 512 bits.
const DESCRIPTOR_WORDS: usize = 16;
/// Maximum number of bytes collected at a time.
const ROOM: usize = 1 << 16;
/// Number of clocks given to the meter at a time when no packet follows.
const PAUSE: u64 = 4_096;
/// Kinds of messages in the wire form, and the offset of the kind in a message.
const KIND_AT: usize = 3;
const KIND_END: u8 = 5;

/// Registers, as in `rtl/tf_meter.sv`.
const ENGINE_ID: u32 = 0x004;
const ENDS_CUT: u32 = 0x008;
const RUNNING: u32 = 0x00c;
const SWEEP_EVERY: u32 = 0x010;
const AGE_PERIOD: u32 = 0x014;
const STAGE_MASK: u32 = 0x018;
const BUCKET_MASK: u32 = 0x01c;
const RESIDENT: u32 = 0x020;
const SEED: u32 = 0x040;
const COUNTERS: u32 = 0x100;

/// A counter of the meter, in the order of its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Packets that came in.
    PacketsMetered,
    /// Their bytes, according to their IP headers.
    BytesMetered,
    /// Records displaced by a packet of another flow.
    EvictedCollision,
    /// Records whose cell ended.
    EvictedAge,
    /// Records that the next packet of their flow could not join, and packets that travelled alone.
    EvictedCut,
    /// Records sent.
    Microflows,
    /// Clocks in which a descriptor waited.
    ClocksWaited,
}

type New = unsafe extern "C" fn(u32) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Write = unsafe extern "C" fn(*mut c_void, u32, u32);
type Read = unsafe extern "C" fn(*mut c_void, u32) -> u32;
type Run = unsafe extern "C" fn(
    *mut c_void,
    *const [u32; DESCRIPTOR_WORDS],
    usize,
    *mut usize,
    *mut u8,
    usize,
    u32,
    u64,
) -> usize;

/// The functions of one translated meter.
#[derive(Clone, Copy)]
struct Functions {
    new: New,
    free: Free,
    write: Write,
    read: Read,
    run: Run,
}

macro_rules! meter_functions {
    ($functions:ident: $new:ident, $free:ident, $write:ident, $read:ident, $run:ident) => {
        unsafe extern "C" {
            fn $new(seed: u32) -> *mut c_void;
            fn $free(meter: *mut c_void);
            fn $write(meter: *mut c_void, address: u32, value: u32);
            fn $read(meter: *mut c_void, address: u32) -> u32;
            fn $run(
                meter: *mut c_void,
                descriptors: *const [u32; DESCRIPTOR_WORDS],
                count: usize,
                taken: *mut usize,
                bytes: *mut u8,
                room: usize,
                ready_of_256: u32,
                clocks: u64,
            ) -> usize;
        }

        const $functions: Functions = Functions {
            new: $new,
            free: $free,
            write: $write,
            read: $read,
            run: $run,
        };
    };
}

meter_functions!(
    OF_V4: tf_meter_v4_new,
    tf_meter_v4_free,
    tf_meter_v4_write,
    tf_meter_v4_read,
    tf_meter_v4_run
);
meter_functions!(
    OF_V6: tf_meter_v6_new,
    tf_meter_v6_free,
    tf_meter_v6_write,
    tf_meter_v6_read,
    tf_meter_v6_run
);

/// A simulated meter.
pub struct VerilatedMeter {
    functions: Functions,
    meter: NonNull<c_void>,
    /// Number of clocks, out of 256, in which the receiver takes a beat.
    ready_of_256: u32,
    buffer: Vec<u8>,
}

// SAFETY: the simulated meter is used by one thread at a time, through `&mut self`, and has no
// thread-local state.
unsafe impl Send for VerilatedMeter {}

impl Drop for VerilatedMeter {
    fn drop(&mut self) {
        // SAFETY: the meter was made by `new` and is not used afterwards.
        unsafe { (self.functions.free)(self.meter.as_ptr()) }
    }
}

impl VerilatedMeter {
    /// A running meter, whose registers have been written. Its receiver takes a beat in
    /// `ready_of_256` of 256 clocks, at random.
    ///
    /// # Panics
    /// If `ready_of_256` is not 1 to 256, or memory is exhausted.
    #[must_use]
    pub fn new(config: &LineConfig, engine_id: u32, ready_of_256: u32) -> Self {
        assert!((1..=256).contains(&ready_of_256), "{ready_of_256} of 256");
        let functions = match config.build == METER_V6 {
            true => OF_V6,
            false => OF_V4,
        };
        // SAFETY: the function takes any number.
        let meter = unsafe { (functions.new)(config.seed[0] as u32) };
        let mut meter = Self {
            functions,
            meter: NonNull::new(meter).expect("the shim throws where memory is exhausted"),
            ready_of_256,
            buffer: vec![0; ROOM],
        };
        for (address, value) in registers_of(config, engine_id) {
            meter.write(address, value);
        }
        meter
    }

    fn write(&mut self, address: u32, value: u32) {
        // SAFETY: the meter was made by `new`, and only this thread uses it.
        unsafe { (self.functions.write)(self.meter.as_ptr(), address, value) }
    }

    fn read(&mut self, address: u32) -> u32 {
        // SAFETY: as above.
        unsafe { (self.functions.read)(self.meter.as_ptr(), address) }
    }

    /// The value of a counter.
    pub fn counter(&mut self, counter: Counter) -> u64 {
        let address = COUNTERS + 8 * counter as u32;
        // The low word comes first, because reading it latches the high one.
        let low = self.read(address);
        u64::from(low) | u64::from(self.read(address + 4)) << 32
    }

    /// Number of records in the table.
    pub fn resident(&mut self) -> u32 {
        self.read(RESIDENT)
    }

    /// Gives steps, and appends the bytes that leave meanwhile.
    pub fn give(&mut self, steps: &[Step], bytes: &mut Vec<u8>) {
        let steps = steps.iter().filter_map(descriptor);
        let descriptors: Vec<_> = steps.collect();
        self.put(&descriptors, bytes);
    }

    /// Ends the last cell, and appends the bytes that leave, up to the last message.
    ///
    /// # Panics
    /// If the last message does not come.
    pub fn end(&mut self, end_ns: u64, bytes: &mut Vec<u8>) {
        let begins = cell(end_ns, false);
        // The second one waits until the line is empty.
        self.put(&[begins, cell(end_ns, true)], bytes);
        for _ in 0..1_000 {
            if self.run(&[], PAUSE, bytes).1 == 0 && ends(bytes) {
                return;
            }
        }
        panic!("the meter's last message does not come");
    }

    fn put(&mut self, mut descriptors: &[[u32; DESCRIPTOR_WORDS]], bytes: &mut Vec<u8>) {
        while !descriptors.is_empty() {
            let (taken, _) = self.run(descriptors, descriptors.len() as u64, bytes);
            descriptors = &descriptors[taken..];
        }
    }

    /// Runs at most `clocks` clocks. Returns the number of descriptors taken, and the number of
    /// bytes that came out.
    fn run(
        &mut self,
        descriptors: &[[u32; DESCRIPTOR_WORDS]],
        clocks: u64,
        bytes: &mut Vec<u8>,
    ) -> (usize, usize) {
        let mut taken = 0;
        // SAFETY: the meter was made by `new`, and only this thread uses it. It reads `len()`
        // descriptors and writes at most the buffer's length.
        let got = unsafe {
            (self.functions.run)(
                self.meter.as_ptr(),
                descriptors.as_ptr(),
                descriptors.len(),
                &raw mut taken,
                self.buffer.as_mut_ptr(),
                self.buffer.len(),
                self.ready_of_256,
                clocks,
            )
        };
        bytes.extend(&self.buffer[..got]);
        (taken, got)
    }
}

/// The registers of a meter, in the order in which they are written. The last one starts the meter.
pub(crate) fn registers_of(config: &LineConfig, engine_id: u32) -> Vec<(u32, u32)> {
    let halves = config
        .seed
        .iter()
        .flat_map(|seed| [*seed as u32, (seed >> 32) as u32]);
    let mut registers: Vec<_> = (SEED..).step_by(4).zip(halves).collect();
    registers.extend([
        (ENGINE_ID, engine_id),
        (ENDS_CUT, config.ends_cut.into()),
        (SWEEP_EVERY, config.sweep_every.into()),
        (AGE_PERIOD, config.age_period - 1),
        (STAGE_MASK, config.size.stages - 1),
        (BUCKET_MASK, config.size.buckets - 1),
        (RUNNING, 1),
    ]);
    registers
}

/// Whether the last of these messages is a sender's last one: it has counters and no record.
fn ends(bytes: &[u8]) -> bool {
    const COUNTERS_BYTES: usize = 32 + 6 * 12;
    let last = bytes.len().checked_sub(COUNTERS_BYTES);
    last.is_some_and(|at| bytes[at..at + 2] == [0x74, 0x66] && bytes[at + KIND_AT] == KIND_END)
}

/// The descriptor of a step: `descriptor_t` in `rtl/tf_meter.sv`. `None` for an idle clock, which
/// the receiver's pace and the line decide.
fn descriptor(step: &Step) -> Option<[u32; DESCRIPTOR_WORDS]> {
    match step {
        Step::Idle => None,
        Step::Cell(start_ns) => Some(cell(*start_ns, false)),
        Step::Packet(packet) => Some(packed(1, packet)),
    }
}

fn cell(start_ns: u64, is_last: bool) -> [u32; DESCRIPTOR_WORDS] {
    let begins = Arrival {
        time_ns: start_ns,
        length_bytes: is_last.into(),
        ..Arrival::default()
    };
    packed(2, &begins)
}

fn packed(kind: u8, packet: &Arrival) -> [u32; DESCRIPTOR_WORDS] {
    let mut bytes = [0; 4 * DESCRIPTOR_WORDS];
    bytes[0] = kind;
    bytes[1..9].copy_from_slice(&packet.time_ns.to_le_bytes());
    bytes[9..13].copy_from_slice(&packet.length_bytes.to_le_bytes());
    bytes[13..15].copy_from_slice(&packet.tcp_flags.to_le_bytes());
    (bytes[15], bytes[16]) = (packet.ttl, packet.tos);
    for (at, word) in packet.key.iter().enumerate() {
        bytes[17 + 8 * at..25 + 8 * at].copy_from_slice(&word.to_le_bytes());
    }
    std::array::from_fn(|at| {
        let word = [0, 1, 2, 3].map(|byte| bytes[4 * at + byte]);
        u32::from_le_bytes(word)
    })
}
