// SPDX-License-Identifier: Apache-2.0
//! The integration tests of this crate as one program, which is linked once.

mod documents;
mod edges;
mod engines;
mod make;
mod sources;
mod style;
