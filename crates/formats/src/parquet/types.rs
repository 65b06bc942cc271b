// SPDX-License-Identifier: Apache-2.0
//! Which Parquet types columns have: exact ones, or those that table formats support.
//!
//! Iceberg (format version 2), Spark, Hive and Trino have neither unsigned numbers nor times below
//! a microsecond. For them a column gets the next larger signed type, and a time becomes two
//! columns: one with all nanoseconds as a long, and a timestamp to partition and filter by.

use std::fmt;
use std::str::FromStr;

use turboflow_record::{Column, ColumnKind};

/// The types of the columns of a Parquet file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParquetTypes {
    /// Unsigned numbers, times in nanoseconds.
    #[default]
    Exact,
    /// Signed numbers; times in microseconds, beside nanoseconds as longs.
    Lake,
    /// As [`Lake`](Self::Lake), and in addition addresses as 16 bytes beside their texts.
    LakeBinary,
}

impl ParquetTypes {
    /// All values with their names.
    pub const NAMES: [(&str, Self); 3] = [
        ("exact", Self::Exact),
        ("lake", Self::Lake),
        ("lake-binary", Self::LakeBinary),
    ];

    /// Whether table formats support all of the types.
    #[must_use]
    pub const fn is_lake(self) -> bool {
        !matches!(self, Self::Exact)
    }
}

impl FromStr for ParquetTypes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        let found = found.map(|(_, types)| *types);
        found.ok_or_else(|| "write exact, lake or lake-binary".to_owned())
    }
}

impl fmt::Display for ParquetTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::NAMES.iter().find(|(_, types)| types == self);
        f.write_str(found.map_or("", |(name, _)| name))
    }
}

/// In what form a leaf of the file holds the values of a column of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its values, with the most precise type.
    Exact,
    /// Its values, with a type that table formats support.
    Lake,
    /// Its times, in microseconds.
    Micros,
    /// Its addresses as 16 bytes; IPv4 addresses as in RFC 4291, section 2.5.5.2.
    Bytes,
}

impl Form {
    /// Whether another leaf has the same values, so that readers of records can ignore this one.
    pub(crate) const fn is_derived(self) -> bool {
        matches!(self, Self::Micros | Self::Bytes)
    }
}

/// A column of the file.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// Name and kind of the values.
    pub(crate) column: Column,
    /// Index of the column of the records.
    pub(crate) source: usize,
    pub(crate) form: Form,
}

/// The columns of a file: those of the records, then the derived ones.
///
/// # Errors
/// The name of a derived column if a column of the records already has it.
pub(crate) fn leaves(columns: &[Column], types: ParquetTypes) -> Result<Vec<Leaf>, String> {
    let form = match types {
        ParquetTypes::Exact => Form::Exact,
        ParquetTypes::Lake | ParquetTypes::LakeBinary => Form::Lake,
    };
    let own = columns.iter().enumerate().map(|(source, column)| Leaf {
        column: column.clone(),
        source,
        form,
    });
    let mut leaves: Vec<Leaf> = own.collect();
    let derived = columns.iter().enumerate().filter_map(|(source, column)| {
        let (name, form) = match column.kind {
            ColumnKind::TimestampNs if types.is_lake() => {
                let stem = column.name.strip_suffix("_ns").unwrap_or(&column.name);
                (format!("{stem}_time"), Form::Micros)
            }
            ColumnKind::Address if types == ParquetTypes::LakeBinary => {
                (format!("{}_bytes", column.name), Form::Bytes)
            }
            _ => return None,
        };
        let column = Column {
            name,
            ..column.clone()
        };
        Some(Leaf {
            column,
            source,
            form,
        })
    });
    for leaf in derived {
        let name = &leaf.column.name;
        if leaves.iter().any(|other| other.column.name == *name) {
            return Err(format!(
                "it has two columns `{name}`: one is derived for `output.parquet-types`, so give \
                 the one of the definition another name"
            ));
        }
        leaves.push(leaf);
    }
    Ok(leaves)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: ColumnKind) -> Column {
        Column {
            name: name.to_owned(),
            kind,
            nullable: false,
        }
    }

    #[test]
    fn times_and_addresses_have_a_second_column_at_the_end() {
        let columns = [
            column("src_addr", ColumnKind::Address),
            column("first_ns", ColumnKind::TimestampNs),
            column("seen", ColumnKind::TimestampNs),
            column("packets", ColumnKind::Unsigned { bits: 64 }),
        ];
        let names = |types| -> Vec<String> {
            let leaves = leaves(&columns, types).unwrap();
            leaves.into_iter().map(|leaf| leaf.column.name).collect()
        };
        let own = ["src_addr", "first_ns", "seen", "packets"];
        assert_eq!(names(ParquetTypes::Exact), own);
        let lake = names(ParquetTypes::Lake);
        assert_eq!(lake[..4], own);
        assert_eq!(lake[4..], ["first_time", "seen_time"]);
        let binary = names(ParquetTypes::LakeBinary);
        assert_eq!(binary[4..], ["src_addr_bytes", "first_time", "seen_time"]);
    }

    #[test]
    fn a_name_that_is_taken_is_refused() {
        let columns = [
            column("first_ns", ColumnKind::TimestampNs),
            column("first_time", ColumnKind::Float),
        ];
        let why = leaves(&columns, ParquetTypes::Lake).unwrap_err();
        assert!(why.contains("two columns `first_time`"), "{why}");
        assert_eq!(leaves(&columns, ParquetTypes::Exact).unwrap().len(), 2);
    }

    #[test]
    fn types_are_known_by_name() {
        for (name, types) in ParquetTypes::NAMES {
            assert_eq!(name.parse(), Ok(types));
            assert_eq!(types.to_string(), name);
        }
        assert!("hive".parse::<ParquetTypes>().is_err());
    }
}
