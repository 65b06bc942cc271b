// SPDX-License-Identifier: Apache-2.0
//! Packet sources: capture files, network interfaces (`live`, on Linux), and filters for both. Also
//! writers of capture files.
//!
//! [`CaptureFile`] reads pcap and pcapng, plain or compressed with gzip or zstd, from a path,
//! standard input or any [`std::io::Read`]. It delivers frames in batches that borrow from the
//! file's memory mapping or from one read buffer. No packet is copied. Nothing is allocated per
//! packet or, after the first few, per batch.
//!
//! ```
//! use turboflow_capture::{CaptureFile, write::PcapWriter};
//! use turboflow_packet::LinkType;
//!
//! let mut writer = PcapWriter::new(Vec::new(), LinkType::Ethernet)?;
//! writer.write(1_000_000_000, &[0; 60], 60)?;
//! let mut file = CaptureFile::from_bytes("example".to_owned(), writer.finish()?)?;
//! while let Some(batch) = file.next_batch(256)? {
//!     for frame in batch.frames() {
//!         assert_eq!(frame.timestamp_ns, 1_000_000_000);
//!     }
//! }
//! assert_eq!(file.counters().packets, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod detect;
mod error;
mod file;
pub mod filter;
mod format;
mod gzip;
mod header;
mod link_names;
#[cfg(target_os = "linux")]
pub mod live;
mod mapped;
mod pcap;
mod pcapng;
mod scouts;
mod source;
mod walk;
pub mod write;

pub use batch::{Batch, Filtered};
pub use error::{Damage, OpenError, ReadError};
pub use file::CaptureFile;
pub use format::{ByteOrder, Compression, Container, Format};
pub use link_names::link_type_name;
pub use walk::Counters;
