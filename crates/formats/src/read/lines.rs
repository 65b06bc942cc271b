// SPDX-License-Identifier: Apache-2.0
//! The lines of a stream, with their numbers, from a single buffer.

use std::io::{self, Read};

use super::ReadError;

/// Number of bytes examined to learn the kinds of the columns.
const SAMPLE_BYTES: usize = 1 << 20;
/// Maximum bytes of a line: a longer one is not a flow record.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Lines of a stream.
pub(crate) struct Lines {
    stream: Box<dyn Read + Send>,
    place: String,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    /// Whether the last line must end with a newline.
    whole_lines: bool,
    line: u64,
    read_bytes: u64,
    /// Whether the last line that was returned had no newline.
    is_open: bool,
    /// The line in which the stream was cut off, and why that was noticed.
    cut: Option<(u64, String)>,
}

const CUT: &str = "the file ends within this line: its writer was stopped";
const CUT_PACKED: &str = "the compressed file ends before its end: its writer was stopped";

impl Lines {
    pub(crate) fn new(stream: Box<dyn Read + Send>, place: &str) -> Self {
        let place = place.to_owned();
        let buffer = vec![0; SAMPLE_BYTES];
        Self {
            stream,
            place,
            buffer,
            start: 0,
            end: 0,
            ended: false,
            whole_lines: false,
            line: 0,
            read_bytes: 0,
            is_open: false,
            cut: None,
        }
    }

    /// The error for the last line; `None` if the file ends within that line and nothing else is
    /// wrong, so that everything before it is intact. `is_short` says whether more text could make
    /// the line valid.
    pub(crate) fn wrong(
        &mut self,
        column: Option<&str>,
        reason: String,
        is_short: bool,
    ) -> Option<ReadError> {
        if self.is_open && is_short {
            self.cut = Some((self.line, format!("{CUT} ({reason})")));
            return None;
        }
        Some(self.error(column, reason))
    }

    /// Where the stream was cut off.
    pub(crate) fn damage(&self) -> Option<ReadError> {
        let (line, reason) = self.cut.as_ref()?;
        Some(ReadError::Line {
            place: self.place.clone(),
            line: *line,
            column: None,
            reason: reason.clone(),
        })
    }

    /// From now on, a last line without a newline is an error: its last number may be cut off.
    pub(crate) fn expect_whole_lines(&mut self) {
        self.whole_lines = true;
    }

    /// Peeks at the first bytes; ends at the end of a line if possible.
    pub(crate) fn sample(&mut self) -> Result<&[u8], ReadError> {
        while !self.ended && self.end < self.buffer.len() {
            self.fill()?;
        }
        let sample = &self.buffer[self.start..self.end];
        let whole = if self.ended {
            None
        } else {
            memchr::memrchr(b'\n', sample)
        };
        Ok(whole.map_or(sample, |end| &sample[..=end]))
    }

    /// Whether a previous [`Lines::sample`] returned the whole stream.
    pub(crate) const fn sample_is_all(&self) -> bool {
        self.ended
    }

    /// The next line without its newline; `None` after the last line.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, ReadError> {
        let mut searched = 0;
        let length = loop {
            let open = &self.buffer[self.start + searched..self.end];
            if let Some(length) = memchr::memchr(b'\n', open) {
                break searched + length;
            }
            searched = self.end - self.start;
            if self.ended && (searched == 0 || self.cut.is_some()) {
                return Ok(None);
            }
            if self.ended && self.whole_lines {
                self.line += 1;
                return Err(self.error(None, "the program that writes it stopped within this line"));
            }
            if self.ended {
                self.is_open = true;
                break searched;
            }
            if searched > LINE_BYTES_MAX {
                self.line += 1;
                return Err(self.error(None, "the line is longer than 16 MiB: no flow records"));
            }
            self.make_room();
            self.fill()?;
        };
        let line = self.start..self.start + length;
        self.start = self.end.min(line.end + 1);
        self.line += 1;
        let line = &self.buffer[line];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// An error in the line that was returned last.
    pub(crate) fn error(&self, column: Option<&str>, reason: impl Into<String>) -> ReadError {
        ReadError::Line {
            place: self.place.clone(),
            line: self.line.max(1),
            column: column.map(str::to_owned),
            reason: reason.into(),
        }
    }

    fn make_room(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.buffer.len() {
            self.buffer.resize(self.end * 2, 0);
        }
    }

    fn fill(&mut self) -> Result<(), ReadError> {
        match self.stream.read(&mut self.buffer[self.end..]) {
            Ok(count) => {
                self.ended = count == 0;
                self.end += count;
                self.read_bytes += count as u64;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            // From a decompressor: the rest of the compressed file is missing.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let lines = memchr::memchr_iter(b'\n', &self.buffer[self.start..self.end]).count();
                self.ended = true;
                self.cut = Some((self.line + lines as u64 + 1, CUT_PACKED.to_owned()));
                Ok(())
            }
            Err(source) => Err(ReadError::Read {
                place: self.place.clone(),
                offset_bytes: self.read_bytes,
                source,
            }),
        }
    }
}
