// SPDX-License-Identifier: Apache-2.0
//! Models by hand, models that are refused, and models of scikit-learn.

mod by_hand;
mod refused;
mod scikit_learn;
mod support;
