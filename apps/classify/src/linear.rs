// SPDX-License-Identifier: Apache-2.0
//! Linear models: the weights are in a flat array, feature by feature, with one weight per class.

use crate::ModelError;
use crate::lines::Line;

/// Scores for classes, which softmax turns into probabilities.
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    /// The weights of all classes for the first feature, then for the second, and so on.
    weights: Vec<f64>,
    bias: Vec<f64>,
}

impl Linear {
    /// Reads the scores from these lines, one line for each class.
    pub(crate) fn read(
        lines: &[Line<'_>],
        features: usize,
        classes: usize,
    ) -> Result<Self, ModelError> {
        let (head, scores) = (lines[0], &lines[1..]);
        if scores.len() != classes {
            let reason = format!(
                "{} lines follow this one: write a score for each of {classes} classes",
                scores.len()
            );
            return Err(head.error(reason));
        }
        let mut rows = Vec::with_capacity(classes);
        for line in scores {
            if line.word != "score" {
                let reason = format!("{:?} is not part of a linear model: write score", line.word);
                return Err(line.error(reason));
            }
            rows.push(line.numbers(1 + features, "the bias and the weight of each feature")?);
        }
        let of_all = |place: usize| rows.iter().map(move |row| row[place]);
        Ok(Self {
            bias: of_all(0).collect(),
            weights: (1..=features).flat_map(of_all).collect(),
        })
    }

    /// Computes the probabilities of each record's classes. `numbers` has `width` features per
    /// record.
    pub(crate) fn evaluate(&self, numbers: &[f64], width: usize, shares: &mut [f64]) {
        let classes = self.bias.len();
        let records = numbers.chunks_exact(width);
        for (record, shares) in records.zip(shares.chunks_exact_mut(classes)) {
            shares.copy_from_slice(&self.bias);
            for (number, weights) in record.iter().zip(self.weights.chunks_exact(classes)) {
                for (share, weight) in shares.iter_mut().zip(weights) {
                    *share += number * weight;
                }
            }
            softmax(shares);
        }
    }
}

/// Turns scores into probabilities. The largest score is subtracted first, so that no exponential
/// overflows.
fn softmax(scores: &mut [f64]) {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - largest).exp();
        sum += *score;
    }
    scores.iter_mut().for_each(|score| *score /= sum);
}

#[cfg(test)]
mod tests {
    use super::softmax;

    #[test]
    fn probabilities_of_large_scores_are_numbers() {
        let mut scores = [1e300, 1e300, -1e300];
        softmax(&mut scores);
        assert_eq!(scores, [0.5, 0.5, 0.0]);
    }
}
