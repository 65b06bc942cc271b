// SPDX-License-Identifier: Apache-2.0
//! Why records cannot be sent to a topic.

use thiserror::Error;

/// Why sending cannot start. Later failures are [`turboflow_formats::ExportError`]s.
#[derive(Debug, Error)]
pub enum KafkaError {
    /// The address is invalid.
    #[error(
        "cannot send to {given:?}: {reason}; an address is kafka://HOST:PORT,HOST:PORT/TOPIC, with \
         options behind it as in ?format=goflow2&records=100&compression=lz4"
    )]
    Target {
        /// The address as given.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The format cannot hold the records.
    #[error("cannot send to {place} as {format}: {reason}")]
    Format {
        /// The address.
        place: String,
        /// The format.
        format: &'static str,
        /// What does not fit.
        reason: String,
    },
    /// librdkafka refuses an option.
    #[error("cannot send to {place}: {reason}")]
    Config {
        /// The address.
        place: String,
        /// The option that it refuses, and why.
        reason: String,
    },
    /// This build has no client.
    #[error(
        "this program was built without Kafka: build it with `make build KAFKA=1`, or with its \
         cargo feature `kafka`; it takes a C compiler, make, pkg-config and libssl-dev"
    )]
    NotBuilt,
}
