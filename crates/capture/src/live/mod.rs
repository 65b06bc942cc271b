// SPDX-License-Identifier: Apache-2.0
//! Packets from a network interface, through a ring that the kernel fills (Linux, AF_PACKET,
//! TPACKET_V3).
//!
//! ```text
//!   kernel                        ring: blocks in shared memory            this program
//! card ─▶ filter ─▶ snap length ─▶ [ kernel's | kernel's | ours | ours ] ─▶ frames of a block
//!            │                          └── no block free: tp_drops             └── block goes back
//!         not counted
//! ```
//!
//! [`Interface`] is one ring. A block is lent to this program when it is full, or some
//! milliseconds after its first packet; its frames borrow from the ring, and it goes back when the
//! next is asked for. The socket belongs to no protocol until ring and filter are in place, so
//! there is no packet from another interface or from before the filter to sort out.
//!
//! Several readers have a ring each of an interface ([`Interface::open_group`]); `fanout` is the
//! program by which the kernel deals packets out to them.
//!
//! [`Sender`] goes the other way: frames of a generator out of an interface.
//!
//! What the kernel counted and what was delivered are compared when a capture ends
//! ([`Interface::close_intake`], [`Interface::is_empty`]): packets seen = delivered + dropped.

mod block;
mod error;
mod fanout;
mod interface;
mod offloads;
mod promiscuous;
mod ring;
mod send;
mod socket;

pub use error::InterfaceError;
pub use fanout::MAX_READERS;
pub use interface::{Interface, InterfaceConfig, InterfaceCounters, State, States, wait};
pub use offloads::Offload;
pub use promiscuous::Promiscuous;
pub use ring::RingSize;
pub use send::{SendError, Sender};
