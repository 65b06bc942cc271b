// SPDX-License-Identifier: Apache-2.0
//! Writes pcapng files, in either byte order.

use std::io::{self, Write};

use turboflow_packet::LinkType;

use super::{captured_length, link_type_number};
use crate::format::ByteOrder;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const OPTION_END: [u8; 4] = [0; 4];

/// Options of an interface description.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterfaceOptions {
    /// Longest captured length, in bytes; 0 = unlimited.
    pub snap_length_bytes: u32,
    /// `if_tsresol`: n for ticks of 10^-n seconds or, with the top bit set, 2^-n. `None`:
    /// microseconds.
    pub resolution: Option<u8>,
    /// `if_tsoffset`: seconds to add to every timestamp.
    pub offset_seconds: Option<i64>,
}

/// Writes a pcapng file block by block. It does not buffer: pass a buffered writer.
#[derive(Debug)]
pub struct PcapngWriter<W: Write> {
    inner: W,
    byte_order: ByteOrder,
    body: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Starts a file with a section in the given byte order.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(inner: W, byte_order: ByteOrder) -> io::Result<Self> {
        let mut writer = Self {
            inner,
            byte_order,
            body: Vec::new(),
        };
        writer.start_section(byte_order)?;
        Ok(writer)
    }

    /// Starts another section. Its interfaces are numbered from 0 again.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn start_section(&mut self, byte_order: ByteOrder) -> io::Result<()> {
        self.byte_order = byte_order;
        self.u32(0x1a2b_3c4d);
        self.u16(1);
        self.u16(0);
        // The section length is unspecified.
        self.u32(u32::MAX);
        self.u32(u32::MAX);
        self.finish_block(SECTION_HEADER)
    }

    /// Describes the section's next interface.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add_interface(
        &mut self,
        link_type: LinkType,
        options: InterfaceOptions,
    ) -> io::Result<()> {
        self.add_interface_number(link_type_number(link_type), options)
    }

    /// Describes the section's next interface, with any link-type number.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add_interface_number(
        &mut self,
        link_type: u16,
        options: InterfaceOptions,
    ) -> io::Result<()> {
        self.u16(link_type);
        self.u16(0);
        self.u32(options.snap_length_bytes);
        if let Some(resolution) = options.resolution {
            self.u16(9);
            self.u16(1);
            self.body.extend_from_slice(&[resolution, 0, 0, 0]);
        }
        if let Some(offset_seconds) = options.offset_seconds {
            self.u16(14);
            self.u16(8);
            match self.byte_order {
                ByteOrder::Big => self.body.extend_from_slice(&offset_seconds.to_be_bytes()),
                ByteOrder::Little => self.body.extend_from_slice(&offset_seconds.to_le_bytes()),
            }
        }
        self.body.extend_from_slice(&OPTION_END);
        self.finish_block(INTERFACE_DESCRIPTION)
    }

    /// Appends an Enhanced Packet Block; `ticks` are in the interface's resolution.
    ///
    /// # Errors
    /// If the file cannot be written, or the packet has 4 GiB or more.
    pub fn write(
        &mut self,
        interface: u32,
        ticks: u64,
        bytes: &[u8],
        wire_length_bytes: u32,
    ) -> io::Result<()> {
        let captured_bytes = captured_length(bytes)?;
        self.u32(interface);
        self.u32((ticks >> 32) as u32);
        self.u32(ticks as u32);
        self.u32(captured_bytes);
        self.u32(wire_length_bytes);
        self.body.extend_from_slice(bytes);
        self.finish_block(ENHANCED_PACKET)
    }

    /// Appends a Simple Packet Block: without a time, on the first interface.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_simple(&mut self, bytes: &[u8], wire_length_bytes: u32) -> io::Result<()> {
        self.u32(wire_length_bytes);
        self.body.extend_from_slice(bytes);
        self.finish_block(SIMPLE_PACKET)
    }

    /// Appends a block of any type. Its body is padded to a multiple of 4 bytes.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_block(&mut self, block_type: u32, body: &[u8]) -> io::Result<()> {
        self.body.extend_from_slice(body);
        self.finish_block(block_type)
    }

    /// Flushes and returns the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.inner.flush()?;
        Ok(self.inner)
    }

    fn u16(&mut self, value: u16) {
        self.body.extend_from_slice(&match self.byte_order {
            ByteOrder::Big => value.to_be_bytes(),
            ByteOrder::Little => value.to_le_bytes(),
        });
    }

    fn u32(&mut self, value: u32) {
        self.body.extend_from_slice(&self.encode(value));
    }

    fn encode(&self, value: u32) -> [u8; 4] {
        match self.byte_order {
            ByteOrder::Big => value.to_be_bytes(),
            ByteOrder::Little => value.to_le_bytes(),
        }
    }

    /// Writes the buffered body as a block.
    fn finish_block(&mut self, block_type: u32) -> io::Result<()> {
        self.body.resize(self.body.len().next_multiple_of(4), 0);
        let length_bytes = captured_length(&self.body)?.saturating_add(12);
        let (block_type, length) = (self.encode(block_type), self.encode(length_bytes));
        self.inner.write_all(&block_type)?;
        self.inner.write_all(&length)?;
        self.inner.write_all(&self.body)?;
        self.inner.write_all(&length)?;
        self.body.clear();
        Ok(())
    }
}
