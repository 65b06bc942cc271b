// SPDX-License-Identifier: Apache-2.0
//! Client hellos of TLS over TCP, and the fingerprints that are made of them.
//!
//! nDPI 4.2 has no JA4, 5.x has no JA3, and both cut server names. These come from here for TLS
//! over TCP; for QUIC and DTLS they are what the library gives.

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
