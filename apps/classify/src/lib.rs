// SPDX-License-Identifier: Apache-2.0
//! Says by a trained model what flow records carry: the analysis application of the TurboFlow paper
//! (section 7.3).
//!
//! A [`Model`] is read from a file that `contrib/classifier/train.py` writes: a tree, a forest or a
//! linear model over the columns of records. A [`Classifier`] is a model bound to the columns of
//! records; it gives each record of a batch one of the model's classes, and how sure it is.
//! `docs/classify.md` has the format of the file.
//!
//! No I/O and no clock: a model is a text, records are batches.

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
