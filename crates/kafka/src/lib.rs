// SPDX-License-Identifier: Apache-2.0
//! Flow records to Kafka: goflow2's protobuf, Arrow or JSON lines.
//!
//! Both directions of a flow belong to the same *lane*, and each lane is assigned to one partition
//! of the topic, so that all records of a flow are in one partition. A writer encodes records on
//! the thread that passes them in, and puts messages into the bounded queue of librdkafka, which
//! sends them from threads of its own. A record counts as sent once all in-sync replicas have it,
//! otherwise as lost.
//!
//! *Ticks*, in a topic of their own, say every second which records of this run each partition
//! holds, and up to which time the records are complete.

#[cfg(any(feature = "kafka", test))]
mod account;
#[cfg(feature = "kafka")]
mod deliveries;
mod encode;
mod error;
mod lanes;
#[cfg(feature = "kafka")]
mod producer;
mod records;
mod target;
#[cfg(any(feature = "kafka", test))]
mod tick;
#[cfg(not(feature = "kafka"))]
mod without;

#[cfg(feature = "kafka")]
use producer as sending;
#[cfg(not(feature = "kafka"))]
use without as sending;

use turboflow_formats::FlowWriter;

pub use encode::{Encoder, Message, Totals};
pub use error::KafkaError;
pub use lanes::{LANES, partition_of};
pub use records::{KafkaOptions, Records, TlsTexts};
pub use target::{Codec, KafkaTarget, Login, Mechanism, MessageFormat};

/// Whether this build can send to Kafka.
pub const IS_BUILT: bool = cfg!(feature = "kafka");

/// Checks whether messages of the target's format can hold records of that schema.
///
/// # Errors
/// [`KafkaError::Format`] if they cannot, [`KafkaError::NotBuilt`] without the feature `kafka`.
pub fn check(target: &KafkaTarget, records: &Records<'_>) -> Result<(), KafkaError> {
    match IS_BUILT {
        true => Encoder::new(target, records).map(|_| ()),
        false => Err(KafkaError::NotBuilt),
    }
}

/// A writer to a topic. Brokers may be away: the client tries to reach them until the writer is
/// finished.
///
/// # Errors
/// As [`check`], and [`KafkaError::Config`] if librdkafka refuses an option.
pub fn send_to(
    target: &KafkaTarget,
    records: &Records<'_>,
    options: &KafkaOptions,
) -> Result<Box<dyn FlowWriter>, KafkaError> {
    sending::send_to(target, records, options)
}
