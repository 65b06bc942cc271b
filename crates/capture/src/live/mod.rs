// SPDX-License-Identifier: Apache-2.0
//! Captures packets from a network interface through a ring in shared memory (Linux, AF_PACKET,
//! TPACKET_V3).
//!
//! ```text
//!   kernel                        ring: blocks in shared memory            this program
//! card ─▶ filter ─▶ snap length ─▶ [ kernel's | kernel's | ours | ours ] ─▶ frames of a block
//!            │                          └── no block free: tp_drops             └── block goes back
//!         not counted
//! ```
//!
//! [`Interface`] is one ring. The kernel hands over a block when it is full, or some milliseconds
//! after its first packet. The frames of a block borrow from the ring. The block is returned when
//! the next one is requested. The socket has no protocol until ring and filter are in place, so
//! that no packet of another interface or from before the filter can arrive.
//!
//! Several readers of one interface have a ring each ([`Interface::open_group`]). `fanout` is the
//! program by which the kernel distributes packets to them.
//!
//! [`Sender`] sends generated frames through an interface.
//!
//! At the end of a capture, the kernel's count is compared with the delivered packets
//! ([`Interface::close_intake`], [`Interface::is_empty`]): packets seen = delivered + dropped.

mod block;
mod error;
mod fanout;
mod interface;
mod names;
mod offloads;
mod promiscuous;
mod ring;
mod send;
mod socket;

pub use error::InterfaceError;
pub use fanout::MAX_READERS;
pub use interface::{Interface, InterfaceConfig, InterfaceCounters, State, States, wait};
pub use names::{index, kernel_name};
pub use offloads::Offload;
pub use promiscuous::Promiscuous;
pub use ring::RingSize;
pub use send::{SendError, Sender};
