// SPDX-License-Identifier: Apache-2.0
//! What a file that should hold flow records is, by its first bytes and never by its name.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;

use super::ReadError;

type Stream = Box<dyn Read + Send>;

/// How many first bytes tell.
const START_BYTES: usize = 512;

/// What first bytes announce.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    Gzip,
    Zstd,
    Parquet,
    /// Nothing that can be read here: what it is, and what to do about it.
    Foreign(&'static str),
    /// CSV or JSON lines, as far as one can tell.
    Text,
}

/// Files that people give by mistake, by how they begin.
const FOREIGN: &[(&[u8], &str)] = &[
    (b"\xd4\xc3\xb2\xa1", CAPTURE),
    (b"\xa1\xb2\xc3\xd4", CAPTURE),
    (b"\x4d\x3c\xb2\xa1", CAPTURE),
    (b"\xa1\xb2\x3c\x4d", CAPTURE),
    (b"\x0a\x0d\x0d\x0a", CAPTURE),
    (
        b"\0\x0a",
        "IPFIX, which collectors read; write CSV, JSON lines or Parquet beside it with one more \
         -w of `turboflow record`",
    ),
    (
        b"\x0c\xa5",
        "a file of nfdump, which reads it: `nfdump -r FILE`",
    ),
    (
        b"\xfd7zXZ\0",
        "compressed with xz; pipe it in: `xz -dc FILE | turboflow show -`",
    ),
    (
        b"BZh",
        "compressed with bzip2; pipe it in: `bzip2 -dc FILE | turboflow show -`",
    ),
    (
        b"\x04\x22\x4d\x18",
        "compressed with lz4; pipe it in: `lz4 -dc FILE | turboflow show -`",
    ),
    (b"PK\x03\x04", "a zip archive; extract the file first"),
    (b"\xff\xfe", "text in UTF-16; save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16; save it as UTF-8"),
    (
        b"[",
        "a JSON array; write an object a line: `jq -c '.[]' FILE | turboflow show -`",
    ),
    (b"<", "XML or a web page"),
];

const CAPTURE: &str = "a capture of packets; make flow records of it first: `turboflow record -r FILE -w flows.parquet`";

impl Start {
    fn of(first: &[u8]) -> Self {
        // RFC 8878, section 3.1.2: skippable frames may come first.
        let is_skippable = first.first().is_some_and(|byte| byte & 0xf0 == 0x50)
            && first.get(1..4) == Some(b"\x2a\x4d\x18");
        if first.starts_with(b"\x1f\x8b") {
            Self::Gzip
        } else if first.starts_with(b"\x28\xb5\x2f\xfd") || is_skippable {
            Self::Zstd
        } else if first.starts_with(b"PAR1") {
            Self::Parquet
        } else if let Some((_, what)) = FOREIGN.iter().find(|(start, _)| first.starts_with(start)) {
            Self::Foreign(what)
        } else if first.contains(&0) {
            Self::Foreign("binary data")
        } else {
            Self::Text
        }
    }
}

/// The text of a stream: one layer of gzip or zstd is taken off where there is one.
///
/// # Errors
/// [`ReadError::Foreign`] where it is no text, and [`ReadError::Read`].
pub(crate) fn text_of(stream: Stream, place: &str) -> Result<Stream, ReadError> {
    let failed = |source| ReadError::Read {
        place: place.to_owned(),
        offset_bytes: 0,
        source,
    };
    let foreign = |what: &str| ReadError::Foreign {
        place: place.to_owned(),
        what: what.to_owned(),
    };
    let (start, stream) = peek(stream).map_err(failed)?;
    let decoder: Stream = match start {
        Start::Text => return Ok(stream),
        Start::Foreign(what) => return Err(foreign(what)),
        Start::Parquet => {
            return Err(foreign(
                "Parquet, which cannot be read from a pipe; name the file instead",
            ));
        }
        Start::Gzip => Box::new(MultiGzDecoder::new(stream)),
        Start::Zstd => Box::new(zstd::stream::read::Decoder::new(stream).map_err(failed)?),
    };
    let (start, stream) = peek(decoder).map_err(failed)?;
    match start {
        Start::Text => Ok(stream),
        Start::Foreign(what) => Err(foreign(&format!("compressed, and inside {what}"))),
        Start::Parquet => Err(foreign(
            "Parquet, and compressed as a whole, which Parquet is by itself; decompress it first",
        )),
        Start::Gzip | Start::Zstd => Err(foreign("compressed twice; decompress it once")),
    }
}

/// What a stream begins with, and all of it.
fn peek(mut stream: Stream) -> io::Result<(Start, Stream)> {
    let mut first = Vec::with_capacity(START_BYTES);
    stream
        .by_ref()
        .take(START_BYTES as u64)
        .read_to_end(&mut first)?;
    Ok((
        Start::of(&first),
        Box::new(Cursor::new(first).chain(stream)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_what_people_give_by_mistake() {
        for text in [
            "",
            "{\"packets\":1}\n",
            "src_addr,packets\n",
            "\u{feff}packets\n",
        ] {
            assert_eq!(Start::of(text.as_bytes()), Start::Text, "{text:?}");
        }
        for (start, what) in FOREIGN {
            assert_eq!(Start::of(start), Start::Foreign(what));
        }
        assert_eq!(Start::of(b"packets\0"), Start::Foreign("binary data"));
        assert_eq!(Start::of(b"\x52\x2a\x4d\x18"), Start::Zstd);
    }
}
