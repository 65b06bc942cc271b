// SPDX-License-Identifier: Apache-2.0
//! Writes classic pcap files with nanosecond timestamps, little-endian.

use std::io::{self, Write};

use turboflow_packet::{Frame, LinkType};

use super::{captured_length, link_type_number};

/// How many bytes are buffered before a write.
const BUFFER_BYTES: usize = 256 << 10;

/// Writes a pcap file with nanosecond timestamps. It has a buffer of its own: pass an unbuffered
/// file.
///
/// [`PcapWriter::finish`] writes the rest of the buffer. Without it, the end of the file is
/// missing.
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    inner: W,
    buffer: Vec<u8>,
}

impl<W: Write> PcapWriter<W> {
    /// Starts a file of packets with the given link type and a snap length of 262,144 bytes.
    ///
    /// # Errors
    /// None at present; the signature leaves room for errors.
    pub fn new(inner: W, link_type: LinkType) -> io::Result<Self> {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        buffer.extend_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
        buffer.extend_from_slice(&2_u16.to_le_bytes());
        buffer.extend_from_slice(&4_u16.to_le_bytes());
        buffer.extend_from_slice(&[0; 8]);
        buffer.extend_from_slice(&262_144_u32.to_le_bytes());
        buffer.extend_from_slice(&u32::from(link_type_number(link_type)).to_le_bytes());
        Ok(Self { inner, buffer })
    }

    /// Appends a packet. Times after 2106 wrap, because the format has 32 bits for seconds.
    ///
    /// # Errors
    /// If the file cannot be written, or the packet has 4 GiB or more.
    #[inline]
    pub fn write(
        &mut self,
        timestamp_ns: u64,
        bytes: &[u8],
        wire_length_bytes: u32,
    ) -> io::Result<()> {
        let mut header = [0; 16];
        header[0..4].copy_from_slice(&((timestamp_ns / 1_000_000_000) as u32).to_le_bytes());
        header[4..8].copy_from_slice(&((timestamp_ns % 1_000_000_000) as u32).to_le_bytes());
        header[8..12].copy_from_slice(&captured_length(bytes)?.to_le_bytes());
        header[12..16].copy_from_slice(&wire_length_bytes.to_le_bytes());
        if self.buffer.len() + header.len() + bytes.len() > BUFFER_BYTES {
            self.write_buffer()?;
        }
        self.buffer.extend_from_slice(&header);
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends a frame, which must have the file's link type.
    ///
    /// # Errors
    /// See [`PcapWriter::write`].
    #[inline]
    pub fn write_frame(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        self.write(frame.timestamp_ns, frame.bytes, frame.wire_length_bytes)
    }

    /// Writes the rest of the buffer and returns the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_buffer()?;
        self.inner.flush()?;
        Ok(self.inner)
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        self.inner.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}
