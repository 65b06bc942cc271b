// SPDX-License-Identifier: Apache-2.0
//! Options for files that stored flow records are written to.

use std::path::{Path, PathBuf};

use clap::Args;
use turboflow_formats::{Format, ParquetTypes, TextOptions, TimeForm, WriteOptions};

use crate::keys::Key;
use crate::record::{as_files, check_use, format, format_of, is_stdout, parquet_types, time_form};

/// How files of flow records are written.
#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// Format if no extension selects it: csv, jsonl, parquet, arrow or ipfix. Default for standard
    /// output: csv
    #[arg(long, value_name = "FORMAT", value_parser = format(), hide_possible_values = true)]
    format: Option<Format>,

    /// Times in CSV and JSON: ns (first_ns), s (first_s) or iso (first_iso)
    #[arg(long, value_name = "FORM", default_value = "ns", value_parser = time_form())]
    #[arg(hide_possible_values = true)]
    time: TimeForm,

    /// Protocols and end reasons by name in CSV and JSON
    #[arg(long)]
    names: bool,

    /// Types of Parquet columns: exact, or lake or lake-binary for table formats such as Iceberg
    #[arg(long, value_name = "TYPES", default_value = "exact", value_parser = parquet_types())]
    #[arg(hide_possible_values = true)]
    parquet_types: ParquetTypes,

    /// Sync files to the disk before they get their names
    #[arg(long)]
    sync: bool,

    /// As root, write through outputs that are symbolic links
    #[arg(long)]
    follow_links: bool,
}

impl FileArgs {
    /// Refuses options that apply to no output.
    pub(crate) fn check_use(&self, write: &[&Path]) -> anyhow::Result<()> {
        let write: Vec<PathBuf> = write.iter().map(PathBuf::from).collect();
        let given = [
            (Key::Format, self.format.is_some()),
            (Key::TextTime, self.time != TimeForm::default()),
            (Key::Names, self.names),
            (Key::ParquetTypes, self.parquet_types.is_lake()),
        ];
        for (key, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
            check_use(key, self.format, &write, false)?;
        }
        Ok(())
    }

    /// The format of an output.
    pub(crate) fn format(&self, path: &Path) -> anyhow::Result<Format> {
        let default = is_stdout(path).then_some(Format::Csv);
        format_of(path, self.format.or(default))
    }

    /// The writer's options from these arguments.
    pub(crate) fn write_options(&self) -> WriteOptions {
        WriteOptions {
            parquet_types: self.parquet_types,
            files: as_files(self.sync, self.follow_links),
            text: TextOptions {
                time: self.time,
                names: self.names,
            },
            ..WriteOptions::default()
        }
    }
}
