// SPDX-License-Identifier: Apache-2.0
//! Reads copies of the first packets of flows.

use std::io;

use libbpf_rs::{MapHandle, Object};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::KernelError;
use crate::layout::words;
use crate::object::map;
use crate::offload::FlowWords;
use crate::ring::Ring;

/// Size of `struct tapped` in `bpf/tap.h` without the frame.
const HEADER_BYTES: usize = 64;

/// Why a packet was tapped: `enum tap_kind` in `bpf/tap.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapKind {
    /// Its flow has no verdict.
    Packet,
    /// It begins a new connection with the key of a finished one that has a row.
    Anew,
    /// It ends the connection of a flow with a row.
    End,
}

/// A copy of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Tap<'a> {
    /// Time of arrival, in nanoseconds since 1970.
    pub time_ns: u64,
    /// The flow's key, with the smaller end first.
    pub flow: FlowWords,
    /// Length of the frame on the wire, in bytes.
    pub frame_bytes: u32,
    /// The kernel's number of the interface.
    pub interface: u32,
    /// Flags of a TCP packet; 0 for other protocols.
    pub tcp_flags: u16,
    /// Whether the packet goes from the greater end of the key to the smaller.
    pub is_reversed: bool,
    /// Why it was tapped.
    pub kind: TapKind,
    /// The first bytes of the frame, at most `OffloadConfig::snap_bytes`.
    pub frame: &'a [u8],
}

impl<'a> Tap<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let (header, frame) = bytes.split_at_checked(HEADER_BYTES)?;
        let mut words = words(header);
        let mut next = || words.next().unwrap_or_default();
        let time_ns = next();
        let flow = std::array::from_fn(|_| next());
        let (lengths, rest) = (next(), next());
        Some(Self {
            time_ns,
            flow,
            frame_bytes: lengths as u32,
            interface: (lengths >> 32) as u32,
            tcp_flags: rest as u16,
            is_reversed: rest >> 16 & 1 != 0,
            kind: match (rest >> 24) as u8 {
                0 => TapKind::Packet,
                1 => TapKind::Anew,
                2 => TapKind::End,
                _ => return None,
            },
            frame,
        })
    }
}

/// The reading side of the taps.
pub struct TapRing {
    ring: Ring,
    map: MapHandle,
}

impl TapRing {
    pub(super) fn open(object: &Object) -> Result<Self, KernelError> {
        let map = map(object, "taps")?;
        let what = "ring of taps";
        let ring = Ring::map(&map).map_err(|source| KernelError::Map { what, source })?;
        Ok(Self { ring, map })
    }

    /// Passes at most `at_most` taps to `take`, in the order of arrival. Returns how many items it
    /// read.
    ///
    /// # Errors
    /// Where the ring contains items that are not taps.
    pub fn read(
        &mut self,
        at_most: usize,
        mut take: impl FnMut(&Tap<'_>),
    ) -> Result<usize, KernelError> {
        let mut foreign = 0;
        let read = self.ring.read(at_most, |bytes| match Tap::of(bytes) {
            Some(tap) => take(&tap),
            None => foreign += 1,
        });
        match foreign {
            0 => Ok(read),
            count => Err(KernelError::ForeignItems { count }),
        }
    }

    /// Waits for a tap, at most `wait_ns` nanoseconds.
    ///
    /// # Errors
    /// Where the kernel refuses to wait.
    pub fn wait(&self, wait_ns: u64) -> Result<(), KernelError> {
        let mut ring = [PollFd::new(&self.map, PollFlags::IN)];
        let limit = Timespec {
            tv_sec: (wait_ns / 1_000_000_000) as i64,
            tv_nsec: (wait_ns % 1_000_000_000) as _,
        };
        match poll(&mut ring, Some(&limit)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(KernelError::Map {
                what: "ring of taps",
                source: io::Error::from(error),
            }),
        }
    }

    /// Waits up to `wait_ns` nanoseconds, even if taps arrive, so that they are read in larger
    /// batches.
    pub fn pause(&self, wait_ns: u64) {
        let limit = Timespec {
            tv_sec: 0,
            tv_nsec: wait_ns.min(999_999_999) as _,
        };
        // A pause that is cut short by a signal does no harm.
        let _ = poll(&mut [], Some(&limit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tap_is_read_as_the_program_writes_it() {
        let mut bytes = Vec::new();
        for word in [
            7,
            11,
            12,
            13,
            14,
            15,
            60 | 3 << 32,
            0x02 | 1 << 16 | 2 << 24,
        ] {
            bytes.extend(u64::to_ne_bytes(word));
        }
        bytes.extend([1, 2, 3]);
        let tap = Tap::of(&bytes).unwrap();
        assert_eq!((tap.time_ns, tap.flow), (7, [11, 12, 13, 14, 15]));
        assert_eq!((tap.frame_bytes, tap.interface), (60, 3));
        assert_eq!((tap.tcp_flags, tap.is_reversed), (2, true));
        assert_eq!((tap.kind, tap.frame), (TapKind::End, &[1, 2, 3][..]));
        assert!(Tap::of(&bytes[..HEADER_BYTES - 1]).is_none());
        bytes[59] = 3;
        assert!(Tap::of(&bytes).is_none());
    }
}
