// SPDX-License-Identifier: Apache-2.0
//! A model, read from the text of its file.

use crate::ModelError;
use crate::feature::Feature;
use crate::forest::Forest;
use crate::linear::Linear;
use crate::lines::{Line, lines};

/// Maximum number of features and of classes of a model. It bounds the memory for a block of
/// records.
const PARTS_MAX: usize = 4096;

/// A trained model.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) features: Vec<Feature>,
    classes: Vec<String>,
    /// The number that replaces a value that a record lacks.
    pub(crate) absent: f64,
    pub(crate) form: Form,
}

/// How a model decides.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    Forest(Forest),
    Linear(Linear),
}

impl Model {
    /// Reads the text of a model's file.
    ///
    /// # Errors
    /// [`ModelError::Line`] with the wrong line, and what is expected there.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        let lines = lines(text)?;
        let is_body = |line: &Line<'_>| matches!(line.word, "tree" | "linear");
        let Some(start) = lines.iter().position(is_body) else {
            let last = lines.last().map_or(1, |line| line.number);
            let reason = "the file ends here: trees, or a linear model, must follow the classes";
            return Err(ModelError::line(last, reason));
        };
        let (head, body) = lines.split_at(start);
        let Head {
            features,
            classes,
            absent,
        } = Head::read(head)?;
        for (what, count) in [("feature", features.len()), ("class", classes.len())] {
            if count == 0 || count > PARTS_MAX {
                let reason = format!(
                    "{count} lines before this one begin with {what}: a model has 1 to {PARTS_MAX}"
                );
                return Err(body[0].error(reason));
            }
        }
        let form = match body[0].word {
            "linear" => Form::Linear(Linear::read(body, features.len(), classes.len())?),
            _ => Form::Forest(Forest::read(body, features.len(), classes.len())?),
        };
        Ok(Self {
            features,
            classes,
            absent,
            form,
        })
    }

    /// The names of the classes, in the order of their numbers.
    #[must_use]
    pub fn classes(&self) -> &[String] {
        &self.classes
    }
}

/// The lines before the trees or scores.
struct Head {
    features: Vec<Feature>,
    classes: Vec<String>,
    absent: f64,
}

impl Head {
    fn read(lines: &[Line<'_>]) -> Result<Self, ModelError> {
        let mut head = Self {
            features: Vec::new(),
            classes: Vec::new(),
            absent: -1.0,
        };
        for line in lines {
            match line.word {
                "note" => {}
                "absent" => head.absent = line.numbers(1, "what stands for an absent value")?[0],
                "feature" => {
                    let feature = Feature::parse(line.rest).map_err(|why| line.error(why))?;
                    head.features.push(feature);
                }
                "class" => {
                    let name = line.rest.to_owned();
                    let is_name = !name.is_empty() && !name.chars().any(char::is_control);
                    if !is_name || head.classes.contains(&name) {
                        let reason = format!("{name:?} is empty, or given twice: write a name");
                        return Err(line.error(reason));
                    }
                    head.classes.push(name);
                }
                other => {
                    let reason = format!(
                        "{other:?} is not part of a model: write note, absent, feature or class, \
                         and then tree or linear"
                    );
                    return Err(line.error(reason));
                }
            }
        }
        Ok(head)
    }
}
