// SPDX-License-Identifier: Apache-2.0
//! Recognises files by their first bytes, never by their name.

use std::fmt::Write;

use crate::format::Compression;

/// How many bytes are needed to recognise a file.
pub(crate) const MAGIC_BYTES: usize = 16;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The compression that the first bytes indicate.
pub(crate) fn compression_of(first: &[u8]) -> Compression {
    // RFC 8878, section 3.1.2: skippable frames may come first; parallel compressors write them.
    let is_skippable =
        first.len() >= 4 && first[0] & 0xf0 == 0x50 && first[1..4] == *b"\x2a\x4d\x18";
    if first.starts_with(GZIP) {
        Compression::Gzip
    } else if first.starts_with(ZSTD) || is_skippable {
        Compression::Zstd
    } else {
        Compression::None
    }
}

/// First bytes of other files, what the files are, and what to do.
const OTHER_FILES: &[(&[u8], &str)] = &[
    (
        GZIP,
        "gzip inside a compressed file, decompress the outer one first",
    ),
    (
        ZSTD,
        "zstd inside a compressed file, decompress the outer one first",
    ),
    (
        b"\x04\x22\x4d\x18",
        "lz4, pipe it in with `lz4 -dc FILE | turboflow ... -`",
    ),
    (
        b"\xfd7zXZ\0",
        "xz, pipe it in with `xz -dc FILE | turboflow ... -`",
    ),
    (
        b"BZh",
        "bzip2, pipe it in with `bzip2 -dc FILE | turboflow ... -`",
    ),
    (b"PK\x03\x04", "a zip archive, extract the capture first"),
    (b"7z\xbc\xaf", "a 7-Zip archive, extract the capture first"),
    (
        b"snoop\0\0\0",
        "a Solaris snoop capture, convert it with `editcap IN OUT`",
    ),
    (
        b"RTSS",
        "a Windows Network Monitor capture, convert it with `editcap IN OUT`",
    ),
    (
        b"GMBU",
        "a Windows Network Monitor capture, convert it with `editcap IN OUT`",
    ),
    (
        b"XCP\0",
        "a NetXRay or Sniffer capture, convert it with `editcap IN OUT`",
    ),
    (
        b"TRSNIFF data",
        "a Sniffer capture, convert it with `editcap IN OUT`",
    ),
    (
        b"\x7fver",
        "a WildPackets Peek capture, convert it with `editcap IN OUT`",
    ),
    (
        b"btsnoop\0",
        "a Bluetooth capture, which holds no IP packets",
    ),
    (b"\x7fELF", "a program"),
    (
        b"PAR1",
        "a Parquet file: if it has flow records, `turboflow show FILE` answers questions about them",
    ),
    (
        b"\x0c\xa5\x01\0",
        "an nfdump flow file, which holds no packets",
    ),
    (
        b"\x0c\xa5\x02\0",
        "an nfdump flow file, which holds no packets",
    ),
    (
        b"<?xml",
        "XML, perhaps an export of Wireshark: save it as pcapng instead",
    ),
    (b"<!DOCTYPE", "a web page, the download went wrong"),
    (b"<html", "a web page, the download went wrong"),
    (
        b"version https://git",
        "a Git LFS pointer, fetch the file with `git lfs pull`",
    ),
];

/// What a file that is not a capture seems to be, and what to do.
pub(crate) fn hint_for(first: &[u8]) -> Option<&'static str> {
    if let Some((_, hint)) = OTHER_FILES
        .iter()
        .find(|(magic, _)| first.starts_with(magic))
    {
        return Some(hint);
    }
    if is_zero(first) {
        return Some("zero bytes, the file was allocated but never written");
    }
    if looks_like_erf(first) {
        return Some("perhaps an Endace ERF capture, convert it with `editcap IN OUT`");
    }
    let is_text = first
        .iter()
        .all(|byte| byte.is_ascii_graphic() || b" \t\r\n".contains(byte));
    is_text.then_some(
        "text: if it has flow records, `turboflow show FILE` answers questions about them; a \
         capture must be saved as pcap or pcapng",
    )
}

fn is_zero(first: &[u8]) -> bool {
    first.iter().all(|byte| *byte == 0)
}

/// ERF has no magic number. A record has 8 bytes of time, then type, flags, record length, losses
/// and wire length. Type 2 is Ethernet; its records have 16 bytes of header and 2 bytes of padding
/// in addition to the frame.
fn looks_like_erf(first: &[u8]) -> bool {
    let Some(header) = first.first_chunk::<16>() else {
        return false;
    };
    let record_bytes = u16::from_be_bytes([header[10], header[11]]);
    let wire_bytes = u16::from_be_bytes([header[14], header[15]]);
    header[8] & 0x7f == 2 && record_bytes >= 18 && wire_bytes >= 14
}

/// The first bytes for a message, in hexadecimal and, if printable, as text.
pub(crate) fn show(first: &[u8]) -> String {
    let mut shown = String::new();
    for byte in first.iter().take(8) {
        let _ = write!(
            shown,
            "{}{byte:02x}",
            if shown.is_empty() { "" } else { " " }
        );
    }
    if first
        .iter()
        .take(8)
        .all(|byte| byte.is_ascii_graphic() || *byte == b' ')
    {
        let text: String = first.iter().map(|byte| char::from(*byte)).take(8).collect();
        let _ = write!(shown, ", {text:?}");
    }
    shown
}
