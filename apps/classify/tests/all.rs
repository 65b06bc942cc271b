// SPDX-License-Identifier: Apache-2.0
//! Tests with hand-made models, with invalid models, and with models of scikit-learn.

mod by_hand;
mod refused;
mod scikit_learn;
mod support;
