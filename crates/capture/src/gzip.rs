// SPDX-License-Identifier: Apache-2.0
//! Decompresses gzip files: any number of members (RFC 1952, section 2.2), and trailing zeros,
//! which tapes, block devices and file systems after a power failure leave.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// The decompressed content of all members.
pub(crate) struct Members<R>(State<R>);

enum State<R> {
    Between(R),
    Within(Box<GzDecoder<R>>),
    /// A placeholder during the transition between two other states.
    Changing,
}

impl<R: BufRead> Members<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self(State::Within(Box::new(GzDecoder::new(reader))))
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match &mut self.0 {
                State::Within(member) => {
                    let bytes = member.read(buffer)?;
                    if bytes > 0 || buffer.is_empty() {
                        return Ok(bytes);
                    }
                }
                State::Between(reader) => {
                    if !skip_zeros(reader)? {
                        return Ok(0);
                    }
                }
                State::Changing => return Ok(0),
            }
            self.0 = match std::mem::replace(&mut self.0, State::Changing) {
                State::Within(member) => State::Between(member.into_inner()),
                State::Between(reader) => State::Within(Box::new(GzDecoder::new(reader))),
                State::Changing => State::Changing,
            };
        }
    }
}

/// Skips zeros. Returns whether something else follows.
fn skip_zeros(reader: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = reader.fill_buf()?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        if zeros < bytes.len() {
            reader.consume(zeros);
            return Ok(true);
        }
        if zeros == 0 {
            return Ok(false);
        }
        reader.consume(zeros);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn member(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> (Vec<u8>, bool) {
        let mut content = Vec::new();
        let outcome = Members::new(BufReader::with_capacity(7, bytes)).read_to_end(&mut content);
        (content, outcome.is_ok())
    }

    #[test]
    fn members_are_joined_and_zeros_skipped() {
        let (one, two, zeros) = (member(b"one"), member(b"two"), vec![0; 1_000]);
        assert_eq!(read(&one), (b"one".to_vec(), true));
        for between in [&[][..], &zeros] {
            let bytes = [&one, between, &two, &zeros].concat();
            assert_eq!(read(&bytes), (b"onetwo".to_vec(), true));
        }
        assert_eq!(read(&member(b"")), (Vec::new(), true));
    }

    #[test]
    fn anything_else_behind_a_member_is_damage() {
        let one = member(b"one");
        assert_eq!(
            read(&[&one[..], b"\0\0rest"].concat()),
            (b"one".to_vec(), false)
        );
        assert!(!read(&one[..one.len() - 1]).1);
        assert!(!read(b"\0\0").1);
    }
}
