// SPDX-License-Identifier: Apache-2.0
//! Classifies flow records with a trained model: the analysis application of the TurboFlow paper
//! (section 7.3).
//!
//! A [`Model`] is read from a file that `contrib/classifier/train.py` writes: a tree, a forest or a
//! linear model over columns of records. A [`Classifier`] is a model bound to the columns of
//! records. It gives each record of a batch one of the model's classes, and a confidence.
//! `docs/classify.md` describes the file format.
//!
//! No I/O and no clock: models are parsed from text, and records are batches.

mod classifier;
mod error;
mod feature;
mod forest;
mod linear;
mod lines;
mod model;

pub use classifier::{Classified, Classifier};
pub use error::ModelError;
pub use model::Model;
