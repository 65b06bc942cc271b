// SPDX-License-Identifier: Apache-2.0
//! Parsers for flags whose values have names, which shells can complete.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use turboflow_formats::{Format, ParquetTypes, RotateBy, TimeForm};
use turboflow_run::LogFormat;

/// Parses the name of a format.
pub(crate) fn format() -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.map(|format| match format {
        Format::JsonLines => PossibleValue::new(format.name()).aliases(["json", "ndjson"]),
        _ => PossibleValue::new(format.name()),
    });
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Format>())
}

/// Parses the name of a time format.
pub(crate) fn time_form() -> impl TypedValueParser<Value = TimeForm> {
    let names = TimeForm::NAMES.map(|(name, _)| name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<TimeForm>())
}

/// Parses the name of a set of Parquet types.
pub(crate) fn parquet_types() -> impl TypedValueParser<Value = ParquetTypes> {
    let names = ParquetTypes::NAMES.map(|(name, _)| name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<ParquetTypes>())
}

/// Parses which time determines the file of a record.
pub(super) fn rotate_by() -> impl TypedValueParser<Value = RotateBy> {
    let names = RotateBy::NAMES.map(|(name, _)| name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<RotateBy>())
}

/// Parses the name of a log format.
pub(super) fn log_format() -> impl TypedValueParser<Value = LogFormat> {
    let names = LogFormat::NAMES.map(|(name, _)| name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<LogFormat>())
}
