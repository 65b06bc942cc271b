// SPDX-License-Identifier: Apache-2.0
//! Netlink requests to the Linux kernel about interfaces: queries and changes.
//!
//! Unlike files in `/sys`, netlink refers to the network namespace of the thread, and one answer
//! has everything about an interface. [`Netlink`] is a socket, [`Request`] a message with
//! attributes. Crates that change interfaces supply the attributes; queries that several crates
//! need are here ([`Link`], [`Features`]).
#![cfg(target_os = "linux")]

mod features;
mod generic;
mod link;
mod message;
mod socket;

pub use features::Features;
pub use generic::{Family, GENERIC_HEADER_BYTES};
pub use link::{Link, LinkRequest};
pub use message::{Attributes, Request, text_of, u32_of};
pub use socket::Netlink;
