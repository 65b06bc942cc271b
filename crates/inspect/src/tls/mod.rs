// SPDX-License-Identifier: Apache-2.0
//! Client hellos of TLS over TCP, and the fingerprints computed from them.
//!
//! nDPI 4.2 has no JA4, 5.x has no JA3, and both truncate server names. For TLS over TCP, all of
//! these are computed here; for QUIC and DTLS, they are what the library reports.

mod bytes;
mod fingerprint;
mod hello;
mod segment;
#[cfg(test)]
mod tests;
mod watch;

pub use fingerprint::{ja3, ja3_text, ja4};
pub use hello::{ClientHello, MAX_HELLO_BYTES};
pub use watch::HelloWatch;
