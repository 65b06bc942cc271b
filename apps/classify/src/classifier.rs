// SPDX-License-Identifier: Apache-2.0
//! A model bound to the columns of records.

use turboflow_record::{Column, ColumnKind, FlowBatch, ValueData, Values};

use crate::feature::BoundFeature;
use crate::model::Form;
use crate::{Model, ModelError};

/// Number of records that are evaluated at a time: their features fit in the L1 cache.
const BLOCK: usize = 128;

/// Assigns records to the classes of a model.
pub struct Classifier<'a> {
    model: &'a Model,
    features: Vec<BoundFeature>,
    /// The features of a block, record by record. As in scikit-learn, trees use 32-bit and linear
    /// models 64-bit numbers.
    numbers: Vec<f32>,
    exact: Vec<f64>,
    shares: Vec<f64>,
}

/// The classes of the records of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Classified {
    /// The number of each record's class within [`Model::classes`].
    pub classes: Vec<u32>,
    /// For trees, the mean share of the class in the leaves; for linear models, its probability.
    /// Between 0 and 1.
    pub confidence: Vec<f64>,
}

impl<'a> Classifier<'a> {
    /// Binds a model to records with these columns.
    ///
    /// # Errors
    /// [`ModelError::Records`] with the feature that the records lack.
    pub fn new(model: &'a Model, schema: &[Column]) -> Result<Self, ModelError> {
        let features = model.features.iter().map(|its| its.bind(schema));
        let features = features.collect::<Result<Vec<_>, _>>()?;
        let (numbers, exact) = match model.form {
            Form::Forest(_) => (BLOCK * features.len(), 0),
            Form::Linear(_) => (0, BLOCK * features.len()),
        };
        Ok(Self {
            model,
            numbers: vec![0.0; numbers],
            exact: vec![0.0; exact],
            shares: vec![0.0; BLOCK * model.classes().len()],
            features,
        })
    }

    /// Appends the classes of a batch's records to `to`.
    pub fn classify(&mut self, batch: &FlowBatch, to: &mut Classified) {
        let classes = self.model.classes().len();
        let parts = match &self.model.form {
            Form::Forest(forest) => forest.trees() as f64,
            Form::Linear(_) => 1.0,
        };
        for start in (0..batch.rows()).step_by(BLOCK) {
            let rows = start..batch.rows().min(start + BLOCK);
            let count = rows.len();
            self.evaluate(batch, rows);
            for shares in self.shares[..count * classes].chunks_exact(classes) {
                let (class, share) = largest(shares, parts);
                to.classes.push(class as u32);
                to.confidence.push(share);
            }
        }
    }

    /// Computes the shares of the classes for a block of records; for forests, their sums over the
    /// trees.
    fn evaluate(&mut self, batch: &FlowBatch, rows: std::ops::Range<usize>) {
        let (width, absent) = (self.features.len(), self.model.absent);
        let used = rows.len() * width;
        let shares = &mut self.shares[..rows.len() * self.model.classes().len()];
        match &self.model.form {
            Form::Forest(forest) => {
                let numbers = &mut self.numbers[..used];
                for (index, feature) in self.features.iter().enumerate() {
                    feature.each(batch, rows.clone(), absent, |row, number| {
                        numbers[row * width + index] = number as f32;
                    });
                }
                forest.evaluate(numbers, width, shares);
            }
            Form::Linear(linear) => {
                let numbers = &mut self.exact[..used];
                for (index, feature) in self.features.iter().enumerate() {
                    feature.each(batch, rows.clone(), absent, |row, number| {
                        numbers[row * width + index] = number;
                    });
                }
                linear.evaluate(numbers, width, shares);
            }
        }
    }

    /// Two columns named `name` and `confidence`, which hold the results of [`Classified`].
    #[must_use]
    pub fn columns(name: &str, confidence: &str) -> [Column; 2] {
        [(name, ColumnKind::Text), (confidence, ColumnKind::Float)].map(|(name, kind)| Column {
            name: name.to_owned(),
            kind,
            nullable: false,
        })
    }

    /// The values of the two columns.
    #[must_use]
    pub fn values(&self, classified: Classified) -> [Values; 2] {
        let mut texts = String::new();
        let ends = classified.classes.iter().map(|class| {
            texts.push_str(&self.model.classes()[*class as usize]);
            texts.len()
        });
        let ends = ends.collect();
        let text = ValueData::Text { ends, texts };
        let all = |data| Values {
            data,
            valid: Vec::new(),
        };
        [all(text), all(ValueData::Float(classified.confidence))]
    }
}

/// The index of the first class whose mean is largest, as in numpy's `argmax`, and that mean. Means
/// are compared because sums that differ may have the same mean after rounding.
#[inline]
fn largest(sums: &[f64], parts: f64) -> (usize, f64) {
    let largest = sums.iter().copied().fold(f64::MIN, f64::max);
    let mean = largest / parts;
    let near = largest * (1.0 - 4.0 * f64::EPSILON);
    let is_it = |sum: &f64| *sum >= near && *sum / parts == mean;
    (sums.iter().position(is_it).unwrap_or(0), mean)
}
