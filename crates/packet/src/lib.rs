// SPDX-License-Identifier: Apache-2.0
//! Parses frames into flow key and feature inputs, exactly as `docs/semantics.md` specifies.
//!
//! ```text
//!            plain Ethernet, IPv4/IPv6, TCP/UDP
//! Frame ──▶ fast ─────────────────────────────────────────▶ Packet
//!            └─ anything else ─▶ walk: link ─▶ ip ─▶ tunnel ─▶ transport
//!                                  └─▶ Rejected, by reason     └─▶ inputs, fragments, telemetry
//! ```
//!
//! No clock, no I/O, no logging, no allocation after [`Parser::new`], and no panic for any input.

mod bytes;
mod datagram;
mod fast;
mod fragments;
mod frame;
mod inputs;
mod ip;
mod link;
mod link_type;
mod mpls;
mod parser;
mod telemetry;
mod transport;
mod tunnel;
mod unread;
mod walk;

#[cfg(test)]
extern crate self as turboflow_packet;
#[cfg(test)]
#[path = "../tests/support/build.rs"]
mod build;
#[cfg(test)]
#[path = "../tests/support/generate.rs"]
mod generate;
#[cfg(test)]
#[path = "../tests/support/marks.rs"]
mod marks;
#[cfg(test)]
mod tests;

pub use fragments::{FragmentCounters, ReassemblyConfig};
pub use frame::Frame;
pub use inputs::PARSED_INPUTS;
pub use ip::MAX_EXTENSION_HEADERS;
pub use link::MAX_LINK_HEADERS;
pub use link_type::LinkType;
pub use parser::{Parser, ParserConfig};
pub use telemetry::{
    DscpMark, TELEMETRY_INPUTS, TelemetryConfig, TelemetryCounters, TelemetryFault, UnknownDscp,
};
pub use tunnel::{MAX_TUNNEL_DEPTH, Tunnel, TunnelSet, UnknownTunnel};
pub use turboflow_record::LAST_TIME_NS;
pub use turboflow_record::{RejectClass, Rejected};
pub use unread::UnreadEtherTypes;
