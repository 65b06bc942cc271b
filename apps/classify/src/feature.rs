// SPDX-License-Identifier: Apache-2.0
//! The features of a model: columns of records, their differences and ratios, and logarithms of
//! these.

use turboflow_record::{Column, ColumnKind, FlowBatch, ValueData, Values};

use crate::ModelError;
use crate::lines::LARGEST;

/// A number that each record has, defined by the names of columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Feature {
    /// As the model writes it.
    pub(crate) text: String,
    form: Form<String>,
    /// Whether it is the natural logarithm of the number plus 1.
    is_logarithm: bool,
}

/// How the number is computed from columns.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form<T> {
    Column(T),
    Difference(T, T),
    Ratio(T, T),
}

/// A feature bound to the positions of its columns.
#[derive(Clone, Debug)]
pub(crate) struct BoundFeature {
    form: Form<usize>,
    is_logarithm: bool,
}

const FORMS: &str = "write a column (bytes), a difference (last_ns - first_ns), a ratio \
    (bytes / packets), or a logarithm of one of them (log(bytes))";

impl Feature {
    /// Parses a feature.
    ///
    /// # Errors
    /// The valid forms of a feature.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let inner = trimmed
            .strip_prefix("log(")
            .and_then(|rest| rest.strip_suffix(')'));
        let is_logarithm = inner.is_some();
        let inner = inner.unwrap_or(trimmed);
        let form = if let Some((left, right)) = inner.split_once('-') {
            Form::Difference(name(left)?, name(right)?)
        } else if let Some((over, under)) = inner.split_once('/') {
            Form::Ratio(name(over)?, name(under)?)
        } else {
            Form::Column(name(inner)?)
        };
        Ok(Self {
            text: text.to_owned(),
            form,
            is_logarithm,
        })
    }

    /// Finds the columns.
    ///
    /// # Errors
    /// [`ModelError::Records`] if a column does not exist or holds no numbers.
    pub(crate) fn bind(&self, schema: &[Column]) -> Result<BoundFeature, ModelError> {
        let place = |name: &String| {
            let wrong = |reason| ModelError::Records {
                feature: self.text.clone(),
                reason,
            };
            let found = schema.iter().position(|column| column.name == *name);
            let index = found.ok_or_else(|| {
                wrong(format!(
                    "the records have no column {name:?}: meter with the definition that the model \
                     was trained with"
                ))
            })?;
            match schema[index].kind {
                ColumnKind::Unsigned { .. } | ColumnKind::TimestampNs | ColumnKind::Float => {
                    Ok(index)
                }
                ColumnKind::List => Err(wrong(format!(
                    "column {name:?} holds lists: name one with a number for each record, such as \
                     one of the op nth"
                ))),
                _ => Err(wrong(format!("column {name:?} holds no numbers"))),
            }
        };
        let form = match &self.form {
            Form::Column(name) => Form::Column(place(name)?),
            Form::Difference(left, right) => Form::Difference(place(left)?, place(right)?),
            Form::Ratio(over, under) => Form::Ratio(place(over)?, place(under)?),
        };
        Ok(BoundFeature {
            form,
            is_logarithm: self.is_logarithm,
        })
    }
}

fn name(text: &str) -> Result<String, String> {
    let name = text.trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match !name.is_empty() && name.chars().all(is_name) {
        true => Ok(name.to_owned()),
        false => Err(FORMS.to_owned()),
    }
}

impl BoundFeature {
    /// Calls `put` for each record with its index within `rows` and its value. `absent` replaces
    /// missing values, including ratios with divisor 0.
    #[inline]
    pub(crate) fn each(
        &self,
        batch: &FlowBatch,
        rows: std::ops::Range<usize>,
        absent: f64,
        mut put: impl FnMut(usize, f64),
    ) {
        let start = rows.start;
        let mut put = |row: usize, number: f64| {
            let number = match self.is_logarithm {
                true => number.ln_1p(),
                false => number,
            };
            // Numbers that are too large, NaN in the file and logarithms of zero count as absent.
            let number = if number.abs() <= LARGEST {
                number
            } else {
                absent
            };
            put(row - start, number);
        };
        match self.form {
            Form::Column(column) => match plain(batch.column(column)) {
                Some(numbers) => rows.for_each(|row| put(row, numbers[row] as f64)),
                None => {
                    let values = batch.column(column);
                    rows.for_each(|row| put(row, number(values, row)));
                }
            },
            Form::Difference(left, right) => {
                let (left, right) = (batch.column(left), batch.column(right));
                rows.for_each(|row| put(row, difference(left, right, row)));
            }
            Form::Ratio(over, under) => {
                let (over, under) = (batch.column(over), batch.column(under));
                match (plain(over), plain(under)) {
                    (Some(over), Some(under)) => {
                        rows.for_each(|row| put(row, ratio(over[row] as f64, under[row] as f64)));
                    }
                    _ => {
                        rows.for_each(|row| put(row, ratio(number(over, row), number(under, row))))
                    }
                }
            }
        }
    }
}

/// The numbers of a column in which no value is absent.
fn plain(values: &Values) -> Option<&[u64]> {
    match &values.data {
        ValueData::Unsigned(numbers) if values.valid.is_empty() => Some(numbers),
        _ => None,
    }
}

/// The number in a row; NaN if it is absent.
fn number(values: &Values, row: usize) -> f64 {
    if values.valid.get(row) == Some(&false) {
        return f64::NAN;
    }
    match &values.data {
        ValueData::Unsigned(numbers) => numbers[row] as f64,
        ValueData::Float(numbers) => numbers[row],
        _ => f64::NAN,
    }
}

/// The difference of whole numbers is computed exactly before it is rounded, because times have
/// more digits than a float can hold.
fn difference(left: &Values, right: &Values, row: usize) -> f64 {
    let is_absent = |values: &Values| values.valid.get(row) == Some(&false);
    match (&left.data, &right.data) {
        _ if is_absent(left) || is_absent(right) => f64::NAN,
        (ValueData::Unsigned(left), ValueData::Unsigned(right)) => {
            let (left, right) = (left[row], right[row]);
            match left >= right {
                true => (left - right) as f64,
                false => -((right - left) as f64),
            }
        }
        _ => number(left, row) - number(right, row),
    }
}

fn ratio(over: f64, under: f64) -> f64 {
    match under == 0.0 {
        true => f64::NAN,
        false => over / under,
    }
}

#[cfg(test)]
mod tests {
    use turboflow_record::Value;

    use super::*;

    fn column(name: &str, kind: ColumnKind) -> Column {
        Column {
            name: name.to_owned(),
            kind,
            nullable: true,
        }
    }

    fn records() -> (Vec<Column>, FlowBatch) {
        let number = ColumnKind::Unsigned { bits: 64 };
        let schema = vec![
            column("first_ns", ColumnKind::TimestampNs),
            column("last_ns", ColumnKind::TimestampNs),
            column("bytes", number),
            column("packets", number),
            column("mean", ColumnKind::Float),
            column("name", ColumnKind::Text),
            column("rate", ColumnKind::Float),
            column("lengths", ColumnKind::List),
        ];
        let mut batch = FlowBatch::new(&schema);
        let at = 1_700_000_000_000_000_001;
        for (last, bytes, packets, mean, rate) in [
            (at + 5, Value::Unsigned(7), 2, f64::NAN, 1e39),
            (at - 1, Value::Absent, 0, 0.5, -3e38),
        ] {
            batch.push_row(&[
                Value::Unsigned(at),
                Value::Unsigned(last),
                bytes,
                Value::Unsigned(packets),
                Value::Float(mean),
                Value::Text("x"),
                Value::Float(rate),
                Value::List(&[40, 1_500]),
            ]);
        }
        (schema, batch)
    }

    #[test]
    fn features_are_of_columns() {
        let (schema, batch) = records();
        let of = |text: &str| {
            let feature = Feature::parse(text).unwrap().bind(&schema).unwrap();
            let mut numbers = vec![0.0; 2];
            feature.each(&batch, 0..2, -1.0, |row, number| numbers[row] = number);
            numbers
        };
        assert_eq!(of("packets"), [2.0, 0.0]);
        assert_eq!(of("bytes"), [7.0, -1.0]);
        assert_eq!(of("mean"), [-1.0, 0.5]);
        // Numbers beyond 32-bit floats would be infinite in a tree and in a score.
        assert_eq!(of("rate"), [-1.0, -3e38]);
        assert_eq!(of(" last_ns - first_ns "), [5.0, -1.0]);
        assert_eq!(of("bytes/packets"), [3.5, -1.0]);
        assert_eq!(of("packets / packets"), [1.0, -1.0]);
        assert_eq!(of("log(packets)"), [2_f64.ln_1p(), 0.0]);
    }

    #[test]
    fn features_that_records_lack_are_named() {
        let (schema, _) = records();
        let refused = |text: &str| {
            let feature = Feature::parse(text).unwrap();
            feature.bind(&schema).unwrap_err().to_string()
        };
        assert_eq!(
            refused("bytes / pakets"),
            "the model uses \"bytes / pakets\", but the records have no column \"pakets\": \
             meter with the definition that the model was trained with"
        );
        assert!(refused("name").contains("holds no numbers"));
        assert!(
            refused("lengths").contains("column \"lengths\" holds lists: name one with a number")
        );
        for text in ["", "a b", "a - b - c", "log(a", "a/", "sin(a)"] {
            assert!(
                Feature::parse(text).unwrap_err().contains("write a column"),
                "{text}"
            );
        }
    }
}
