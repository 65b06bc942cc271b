// SPDX-License-Identifier: Apache-2.0
//! The lines of a model file. `docs/classify.md` describes them.
//!
//! Numbers are parsed exactly, to the last bit: a threshold that differs in one bit could send a
//! record to another leaf.

use crate::ModelError;

/// The first line.
pub(crate) const HEAD: &str = "turboflow-model 1";

/// The largest number allowed in models and records: the largest 32-bit float, because trees
/// compare 32-bit floats. Products and sums of such numbers stay finite in 64 bits, so every score
/// is finite.
pub(crate) const LARGEST: f64 = f32::MAX as f64;
/// A rounded-down form of it, for messages.
const LARGEST_TEXT: &str = "3.4e38";

/// A line and its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) number: usize,
    /// The first word.
    pub(crate) word: &'a str,
    /// The text after the first word.
    pub(crate) rest: &'a str,
}

/// The lines after the first, without empty ones and comments.
///
/// # Errors
/// If the first line is not that of a model.
pub(crate) fn lines(text: &str) -> Result<Vec<Line<'_>>, ModelError> {
    let mut lines = text.lines().enumerate();
    let head = lines.next().map_or("", |(_, line)| line.trim_end());
    if head != HEAD {
        let reason = match head.strip_prefix("turboflow-model ") {
            Some(version) => format!("this program reads version 1, not {version}"),
            None => format!(
                "it is not {HEAD:?}, so this is not a model: contrib/classifier/train.py writes models"
            ),
        };
        return Err(ModelError::line(1, reason));
    }
    let lines = lines.map(|(index, line)| {
        let line = line.trim();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Line {
            number: index + 1,
            word,
            rest: rest.trim(),
        }
    });
    let is_said = |line: &Line<'_>| !line.word.is_empty() && !line.word.starts_with('#');
    Ok(lines.filter(is_said).collect())
}

impl Line<'_> {
    /// An error of this line.
    pub(crate) fn error(&self, reason: impl Into<String>) -> ModelError {
        ModelError::line(self.number, reason)
    }

    /// The `count` numbers of the line.
    ///
    /// # Errors
    /// If a word is not a valid number, or there are more or fewer than `count`.
    pub(crate) fn numbers(&self, count: usize, of: &str) -> Result<Vec<f64>, ModelError> {
        let numbers = self.rest.split_whitespace().map(|word| {
            let number = word.parse().ok().filter(|number: &f64| !number.is_nan());
            let number = number.ok_or_else(|| self.error(format!("{word:?} is not a number")))?;
            match number.abs() <= LARGEST {
                true => Ok(number),
                false => Err(self.error(format!(
                    "{word} is too large: write a number from -{LARGEST_TEXT} to {LARGEST_TEXT}"
                ))),
            }
        });
        let numbers = numbers.collect::<Result<Vec<f64>, _>>()?;
        match numbers.len() == count {
            true => Ok(numbers),
            false => Err(self.error(format!(
                "{} numbers follow {:?}: write {count}, {of}",
                numbers.len(),
                self.word
            ))),
        }
    }
}
