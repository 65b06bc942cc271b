// SPDX-License-Identifier: Apache-2.0
//! File formats and their names.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::ExportError;

/// A file format for flow records. The writer of each is chosen in `create.rs`
/// (`writer_of_format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Comma-separated values with a header line.
    Csv,
    /// JSON lines: one object per line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow IPC: the file format for files, the stream format for streams.
    Arrow,
    /// IPFIX messages (RFC 5655).
    Ipfix,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 5] = [
        Self::Csv,
        Self::JsonLines,
        Self::Parquet,
        Self::Arrow,
        Self::Ipfix,
    ];

    /// The formats that [`read`](crate::read) understands and that need no mapping from columns to
    /// information elements.
    pub const READABLE: [Self; 3] = [Self::Csv, Self::JsonLines, Self::Parquet];

    /// The name a user gives on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::JsonLines => "jsonl",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::Ipfix => "ipfix",
        }
    }

    /// Whether the format is text that a terminal can show.
    #[must_use]
    pub const fn is_text(self) -> bool {
        match self {
            Self::Csv | Self::JsonLines => true,
            Self::Parquet | Self::Arrow | Self::Ipfix => false,
        }
    }

    /// Whether a file has content even if it has no records.
    pub(crate) const fn has_header(self) -> bool {
        match self {
            Self::Csv | Self::Parquet | Self::Arrow | Self::Ipfix => true,
            Self::JsonLines => false,
        }
    }

    /// The format that belongs to the extension of a file name, in upper or lower case: `.csv`,
    /// `.jsonl`, `.ndjson`, `.json`, `.parquet`, `.arrow`, `.ipfix`. A final `.part` (the rest of
    /// an incomplete file) is ignored, and so is the `.gz` or `.zst` of a compressed text.
    ///
    /// # Errors
    /// [`ExportError::UnknownFormat`] for every other extension.
    pub fn from_path(path: &Path) -> Result<Self, ExportError> {
        let unfinished = without_part(path);
        let packing = Packing::from_path(unfinished);
        let plain = match packing {
            Packing::None => unfinished,
            Packing::Gzip | Packing::Zstd => Path::new(unfinished.file_stem().unwrap_or_default()),
        };
        let found = extension(plain).and_then(|extension| Self::from_name(&extension));
        // Parquet compresses its pages itself, Arrow files are meant to be mapped into memory, and
        // collectors cannot read compressed IPFIX.
        let found = found.filter(|format| packing == Packing::None || format.is_text());
        found.ok_or_else(|| ExportError::UnknownFormat {
            given: path.display().to_string(),
        })
    }

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" | "json" => Some(Self::JsonLines),
            "parquet" => Some(Self::Parquet),
            "arrow" => Some(Self::Arrow),
            "ipfix" => Some(Self::Ipfix),
            _ => None,
        }
    }
}

/// How a text file is compressed as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Not at all.
    #[default]
    None,
    /// Gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
}

impl Packing {
    /// The compression that a file name asks for, by its extension.
    pub(crate) fn from_path(path: &Path) -> Self {
        match extension(without_part(path)).as_deref() {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::None,
        }
    }
}

fn extension(path: &Path) -> Option<String> {
    path.extension()
        .map(|extension| extension.to_string_lossy().to_lowercase())
}

/// The path without a final `.part`.
fn without_part(path: &Path) -> &Path {
    match extension(path).as_deref() {
        Some("part") => Path::new(path.file_stem().unwrap_or_default()),
        _ => path,
    }
}

impl FromStr for Format {
    type Err = ExportError;

    fn from_str(name: &str) -> Result<Self, ExportError> {
        Self::from_name(&name.to_lowercase()).ok_or_else(|| ExportError::UnknownFormat {
            given: name.to_owned(),
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_known_by_extension_and_by_name() {
        for (path, format) in [
            ("a/b.csv", Format::Csv),
            ("b.JSONL", Format::JsonLines),
            ("b.ndjson", Format::JsonLines),
            ("b.json", Format::JsonLines),
            ("b.tar.parquet", Format::Parquet),
            ("b.csv.part", Format::Csv),
            ("b.ipfix", Format::Ipfix),
            ("b.arrow.part", Format::Arrow),
            ("a/b.csv.zst", Format::Csv),
            ("b.JSONL.GZ", Format::JsonLines),
            ("b.csv.gz.part", Format::Csv),
        ] {
            assert_eq!(
                Format::from_path(Path::new(path)).unwrap(),
                format,
                "{path}"
            );
        }
        for format in Format::ALL {
            assert_eq!(format.name().parse::<Format>().unwrap(), format);
        }
    }

    #[test]
    fn lists_the_formats_for_an_unknown_name() {
        for path in [
            "flows",
            "flows.xlsx",
            ".csv",
            "part",
            "a.parquet.gz",
            "a.ipfix.zst",
            "a.arrow.zst",
            "a.gz",
        ] {
            let message = Format::from_path(Path::new(path)).unwrap_err().to_string();
            assert!(
                message.contains("csv") && message.contains("parquet"),
                "{message}"
            );
        }
        assert!("xml".parse::<Format>().is_err());
    }
}
