// SPDX-License-Identifier: Apache-2.0
//! File formats and their names.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::ExportError;

/// A file format for flow records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Comma-separated values with a header line.
    Csv,
    /// One JSON object a line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
    /// IPFIX messages (RFC 5655); can be written, not read.
    Ipfix,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Csv, Self::JsonLines, Self::Parquet, Self::Ipfix];

    /// The formats that [`read`](crate::read) understands.
    pub const READABLE: [Self; 3] = [Self::Csv, Self::JsonLines, Self::Parquet];

    /// The name a user gives on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::JsonLines => "jsonl",
            Self::Parquet => "parquet",
            Self::Ipfix => "ipfix",
        }
    }

    /// Whether a terminal can show it.
    #[must_use]
    pub const fn is_text(self) -> bool {
        match self {
            Self::Csv | Self::JsonLines => true,
            Self::Parquet | Self::Ipfix => false,
        }
    }

    /// Whether a file has content even without records.
    pub(crate) const fn has_header(self) -> bool {
        match self {
            Self::Csv | Self::Parquet | Self::Ipfix => true,
            Self::JsonLines => false,
        }
    }

    /// The format for a file name's extension, in upper or lower case: `.csv`, `.jsonl`, `.ndjson`,
    /// `.json`, `.parquet`, `.ipfix`. A final `.part` (what remains of an incomplete file) is
    /// ignored.
    ///
    /// # Errors
    /// [`ExportError::UnknownFormat`] for every other name.
    pub fn from_path(path: &Path) -> Result<Self, ExportError> {
        let extension = |path: &Path| path.extension().map(|e| e.to_string_lossy().to_lowercase());
        let found = match extension(path) {
            Some(part) if part == "part" => {
                extension(Path::new(path.file_stem().unwrap_or_default()))
            }
            other => other,
        };
        found
            .and_then(|extension| Self::from_name(&extension))
            .ok_or_else(|| ExportError::UnknownFormat {
                given: path.display().to_string(),
            })
    }

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" | "json" => Some(Self::JsonLines),
            "parquet" => Some(Self::Parquet),
            "ipfix" => Some(Self::Ipfix),
            _ => None,
        }
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
        for path in ["flows", "flows.xlsx", ".csv", "part"] {
            let message = Format::from_path(Path::new(path)).unwrap_err().to_string();
            assert!(
                message.contains("csv") && message.contains("parquet"),
                "{message}"
            );
        }
        assert!("xml".parse::<Format>().is_err());
    }
}
