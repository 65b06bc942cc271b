// SPDX-License-Identifier: Apache-2.0
//! Requests to the Linux kernel about interfaces, by netlink: what it says of them, and orders.
//!
//! Netlink, unlike files in `/sys`, is of the network namespace of the thread, and one answer has
//! all about an interface. [`Netlink`] is a socket, [`Request`] a message with attributes. Rooms
//! that send orders bring the attributes; questions that several rooms have are here ([`Link`],
//! [`Features`]).
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
