// SPDX-License-Identifier: Apache-2.0
//! Frame bytes to flow key and feature inputs, as `docs/semantics.md` says, to the byte.

mod frame;
mod link_type;

pub use frame::Frame;
pub use link_type::LinkType;
