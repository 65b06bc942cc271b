// SPDX-License-Identifier: Apache-2.0
//! The integration tests of this crate in one program, which links once.

mod documents;
mod edges;
mod engines;
mod make;
mod sources;
mod style;
