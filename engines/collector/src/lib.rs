// SPDX-License-Identifier: Apache-2.0
//! Flow records of routers and other probes as an engine: IPFIX (RFC 7011), NetFlow v9 (RFC 3954),
//! NetFlow v5, the sampled packets of sFlow v5, and microflow records of other TurboFlow processes.
//!
//! A flow record of another exporter is merged like a microflow record of our own engines. Messages
//! come from a [`MessageSource`], which the program opens; this crate has no sockets and no clock.
//! The state that an exporter can create is bounded, and each kind of false claim has a counter
//! ([`Counts`]).
//!
//! ```text
//! message ─▶ header ─▶ domain: sequence, templates, start ─▶ flow ─▶ row ─▶ order of time ─▶ batch
//! ```

#[cfg(test)]
mod builder;
mod bytes;
mod counts;
mod decoder;
mod domain;
mod engine;
mod exporter_numbers;
mod exporters;
mod flow;
mod header;
mod heard;
mod microflows;
mod order;
mod probes;
mod rows;
mod sflow;
mod slot;
mod stream;
mod template;
#[cfg(test)]
mod tests;
mod times;

pub use counts::Counts;
pub use decoder::Message;
pub use engine::{
    CollectorConfig, CollectorEngine, MessageSource, Polled, TakeMessage, abilities,
    abilities_of_microflows,
};
pub use exporters::{
    MOST_DOMAINS, MOST_EXPORTERS, MOST_TEMPLATE_FIELDS, MOST_WAITING_BYTES, Sender,
};
pub use microflows::Refused;
pub use rows::refused;
pub use stream::{FileSource, MAX_MESSAGE_BYTES, MessageStream, NextMessage, StreamError};
