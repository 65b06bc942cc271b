// SPDX-License-Identifier: Apache-2.0
//! Recognises the content of a file by its first bytes, never by its name.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;

use super::ReadError;

type Stream = Box<dyn Read + Send>;

/// Number of bytes examined.
const START_BYTES: usize = 512;

/// The content recognised by the first bytes.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    Gzip,
    Zstd,
    Parquet,
    /// A format that cannot be read here.
    Foreign(Foreign),
    /// Presumably CSV or JSON lines.
    Text,
}

/// A kind of file that was given by mistake, and what the user can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Foreign {
    what: &'static str,
    mend: &'static str,
}

impl Foreign {
    const fn new(what: &'static str, mend: &'static str) -> Self {
        Self { what, mend }
    }
}

const CAPTURE: Foreign = Foreign::new(
    "a capture of packets",
    "make flow records of it first: `turboflow record -r FILE -w flows.parquet`",
);
const ARCHIVE: Foreign = Foreign::new("an archive", "extract the file first");
const UTF_16: Foreign = Foreign::new("text in UTF-16", "save it as UTF-8");
const BINARY: Foreign = Foreign::new("binary data", OF_RECORD);
const OF_RECORD: &str = "CSV, JSON lines and Parquet as `turboflow record -w` writes them are read";

/// Known formats by their first bytes. `crates/capture` has its own list for files that are not
/// captures: the two crates do not depend on each other, and the advice differs.
const FOREIGN: &[(&[u8], Foreign)] = &[
    (b"\xd4\xc3\xb2\xa1", CAPTURE),
    (b"\xa1\xb2\xc3\xd4", CAPTURE),
    (b"\x4d\x3c\xb2\xa1", CAPTURE),
    (b"\xa1\xb2\x3c\x4d", CAPTURE),
    (b"\x0a\x0d\x0d\x0a", CAPTURE),
    (
        b"\0\x0a",
        Foreign::new(
            "IPFIX, which is read only from a plain file",
            "name the file instead, and decompress it if it is compressed",
        ),
    ),
    (
        b"ARROW1",
        Foreign::new(
            "Arrow, which is for other programs",
            "record Parquet, or convert the file with pyarrow: `pyarrow.parquet.write_table(\
             pyarrow.ipc.open_file('FILE').read_all(), 'flows.parquet')`",
        ),
    ),
    (
        b"\x0c\xa5",
        Foreign::new("a file of nfdump", "`nfdump -r FILE` reads it"),
    ),
    (
        b"\xfd7zXZ\0",
        Foreign::new(
            "compressed with xz",
            "pipe it in: `xz -dc FILE | turboflow show -`",
        ),
    ),
    (
        b"BZh",
        Foreign::new(
            "compressed with bzip2",
            "pipe it in: `bzip2 -dc FILE | turboflow show -`",
        ),
    ),
    (
        b"\x04\x22\x4d\x18",
        Foreign::new(
            "compressed with lz4",
            "pipe it in: `lz4 -dc FILE | turboflow show -`",
        ),
    ),
    (b"PK\x03\x04", ARCHIVE),
    (b"7z\xbc\xaf", ARCHIVE),
    (b"\xff\xfe", UTF_16),
    (b"\xfe\xff", UTF_16),
    (
        b"[",
        Foreign::new(
            "a JSON array",
            "write an object a line: `jq -c '.[]' FILE | turboflow show -`",
        ),
    ),
    (b"<", Foreign::new("XML or a web page", OF_RECORD)),
];

/// Position of `ustar` in a tar archive.
const USTAR: std::ops::Range<usize> = 257..262;

impl Start {
    fn of(first: &[u8]) -> Self {
        // Skippable frames may come first (RFC 8878, section 3.1.2).
        let is_skippable = first.first().is_some_and(|byte| byte & 0xf0 == 0x50)
            && first.get(1..4) == Some(b"\x2a\x4d\x18");
        if first.starts_with(b"\x1f\x8b") {
            Self::Gzip
        } else if first.starts_with(b"\x28\xb5\x2f\xfd") || is_skippable {
            Self::Zstd
        } else if first.starts_with(b"PAR1") {
            Self::Parquet
        } else if let Some((_, foreign)) =
            FOREIGN.iter().find(|(start, _)| first.starts_with(start))
        {
            Self::Foreign(*foreign)
        } else if first.get(USTAR) == Some(b"ustar") {
            Self::Foreign(ARCHIVE)
        } else if first.contains(&0) {
            Self::Foreign(BINARY)
        } else {
            Self::Text
        }
    }
}

/// The text of a stream, decompressed once if it is gzip or zstd.
///
/// # Errors
/// [`ReadError::Foreign`] if the content is not text, and [`ReadError::Read`].
pub(crate) fn text_of(stream: Stream, place: &str) -> Result<Stream, ReadError> {
    let failed = |source| ReadError::Read {
        place: place.to_owned(),
        offset_bytes: 0,
        source,
    };
    let foreign = |what: &str, mend| ReadError::Foreign {
        place: place.to_owned(),
        what: what.to_owned(),
        mend,
    };
    let (start, stream) = peek(stream).map_err(failed)?;
    let decoder: Stream = match start {
        Start::Text => return Ok(stream),
        Start::Foreign(Foreign { what, mend }) => return Err(foreign(what, mend)),
        Start::Parquet => {
            let what = "Parquet, which is read only from a plain file";
            return Err(foreign(what, "name the file instead"));
        }
        Start::Gzip => Box::new(MultiGzDecoder::new(stream)),
        Start::Zstd => Box::new(zstd::stream::read::Decoder::new(stream).map_err(failed)?),
    };
    let (start, stream) = peek(decoder).map_err(failed)?;
    match start {
        Start::Text => Ok(stream),
        // `turboflow record` also decompresses captures.
        Start::Foreign(CAPTURE) => Err(foreign(CAPTURE.what, CAPTURE.mend)),
        Start::Foreign(Foreign { what, .. }) => Err(foreign(
            &format!("compressed, and within that it is {what}"),
            DECOMPRESS,
        )),
        Start::Parquet => Err(foreign("Parquet that is compressed as a whole", DECOMPRESS)),
        Start::Gzip | Start::Zstd => Err(foreign("compressed twice", DECOMPRESS)),
    }
}

const DECOMPRESS: &str = "decompress it first";

/// The kind of content of a stream, and the stream, again from its start.
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
    fn tells_text_from_other_kinds_of_files() {
        for text in [
            "",
            "{\"packets\":1}\n",
            "src_addr,packets\n",
            "\u{feff}packets\n",
        ] {
            assert_eq!(Start::of(text.as_bytes()), Start::Text, "{text:?}");
        }
        for (start, foreign) in FOREIGN {
            assert_eq!(Start::of(start), Start::Foreign(*foreign));
        }
        let mut tar = [0; 512];
        tar[..4].copy_from_slice(b"name");
        tar[USTAR].copy_from_slice(b"ustar");
        assert_eq!(Start::of(&tar), Start::Foreign(ARCHIVE));
        assert_eq!(Start::of(b"packets\0"), Start::Foreign(BINARY));
        assert_eq!(Start::of(b"\x52\x2a\x4d\x18"), Start::Zstd);
    }
}
