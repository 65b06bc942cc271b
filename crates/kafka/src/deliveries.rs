// SPDX-License-Identifier: Apache-2.0
//! Delivery reports of messages, and the choice of partitions. The client calls both on the thread
//! that polls it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode};
use rdkafka::message::Message as _;
use rdkafka::producer::{DeliveryResult, Partitioner, ProducerContext};
use turboflow_transport::{ObserveSending, SendEvent};

use crate::account::{Account, Parcel};
use crate::lanes::partition_of;
use crate::{KafkaOptions, KafkaTarget, Totals};

/// The content of a message.
pub(crate) enum Sent {
    Records(Parcel),
    Tick,
}

/// Assigns each lane to one partition.
pub(crate) struct Lanes {
    /// The topic of the records.
    topic: String,
    /// Number of partitions of the topic; 0 while it is unknown.
    partitions: AtomicUsize,
}

impl Partitioner for Lanes {
    fn partition(
        &self,
        topic: &str,
        key: Option<&[u8]>,
        partitions: i32,
        _is_available: impl Fn(i32) -> bool,
    ) -> i32 {
        let key = key.unwrap_or_default();
        if topic == self.topic {
            let count = usize::try_from(partitions).unwrap_or(0);
            self.partitions.store(count, Ordering::Relaxed);
            return partition_of(key, partitions);
        }
        // All ticks of an exporter go to the same partition, so that they stay in order.
        let sum: u32 = key.iter().map(|byte| u32::from(*byte)).sum();
        (sum % partitions.max(1).unsigned_abs()) as i32
    }
}

/// Counts delivery reports, and reports failures.
pub(crate) struct Deliveries {
    place: String,
    tick_place: String,
    observe: ObserveSending,
    observe_ticks: fn(&str, &io::Error),
    lanes: Lanes,
    account: Mutex<Account>,
    pub(crate) messages: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) is_down: AtomicBool,
    /// Whether a tick has been sent and not yet been delivered or lost.
    pub(crate) tick_waits: AtomicBool,
    /// Whether it was reported that ticks cannot be sent.
    ticks_are_down: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl Deliveries {
    pub(crate) fn new(target: &KafkaTarget, options: &KafkaOptions) -> Self {
        let ticks = target.ticks.as_deref().unwrap_or_default();
        Self {
            place: target.to_string(),
            tick_place: format!("{target}: ticks to {ticks}"),
            observe: options.send.observe,
            observe_ticks: options.observe_ticks,
            lanes: Lanes {
                topic: target.topic.clone(),
                partitions: AtomicUsize::new(0),
            },
            account: Mutex::default(),
            messages: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            is_down: AtomicBool::new(false),
            tick_waits: AtomicBool::new(false),
            ticks_are_down: AtomicBool::new(false),
            failure: Mutex::default(),
        }
    }

    pub(crate) fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of partitions of the topic; 0 while it is unknown.
    pub(crate) fn partitions(&self) -> usize {
        self.lanes.partitions.load(Ordering::Relaxed)
    }

    /// Counts records as lost.
    pub(crate) fn lose(&self, parcel: &Parcel, reason: &str) {
        self.account().lose(parcel);
        self.fail(reason);
    }

    /// Counts as lost the records for which no delivery report arrived.
    pub(crate) fn lose_without_end(&self, records: u64) {
        self.account().lost.add(Totals {
            records,
            ..Totals::default()
        });
    }

    fn fail(&self, reason: &str) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        *failure = Some(reason.to_owned());
    }

    pub(crate) fn failure(&self) -> Option<io::Error> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure
            .as_ref()
            .map(|reason| io::Error::other(reason.clone()))
    }

    /// Numbers of records that were delivered and that were lost.
    pub(crate) fn ends(&self) -> (u64, u64) {
        let account = self.account();
        (account.arrived.records, account.lost.records)
    }

    /// Number of records that were delivered or lost.
    pub(crate) fn done(&self) -> u64 {
        self.account().done()
    }

    /// Reports once why ticks cannot be delivered. Unreachable brokers have already been reported.
    pub(crate) fn lose_tick(&self, error: &ClientError) {
        if !self.is_down.load(Ordering::Relaxed)
            && !self.ticks_are_down.swap(true, Ordering::Relaxed)
        {
            let reason = match is_purged(error) {
                true => "not acknowledged by the end of the run".to_owned(),
                false => error.to_string(),
            };
            (self.observe_ticks)(&self.tick_place, &io::Error::other(reason));
        }
    }
}

/// Whether the message failed only because the client was told to discard it.
fn is_purged(error: &ClientError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(RDKafkaErrorCode::PurgeQueue | RDKafkaErrorCode::PurgeInflight)
    )
}

impl ClientContext for Deliveries {
    /// Drops librdkafka's log lines, because the program reports errors itself.
    fn log(&self, _level: RDKafkaLogLevel, _facility: &str, _message: &str) {}

    fn error(&self, error: ClientError, reason: &str) {
        let is_down = matches!(
            error.rdkafka_error_code(),
            Some(
                RDKafkaErrorCode::AllBrokersDown
                    | RDKafkaErrorCode::BrokerTransportFailure
                    | RDKafkaErrorCode::Resolve
                    | RDKafkaErrorCode::Authentication
                    | RDKafkaErrorCode::SSL
            )
        );
        // How many brokers are down says less than why.
        match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::AllBrokersDown) if self.failure().is_some() => {}
            _ => self.fail(reason),
        }
        if is_down && !self.is_down.swap(true, Ordering::Relaxed) {
            let reason = io::Error::other(reason.to_owned());
            (self.observe)(&self.place, &SendEvent::Lost(&reason));
        }
    }
}

impl ProducerContext<Lanes> for Deliveries {
    type DeliveryOpaque = Box<Sent>;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: Box<Sent>) {
        let parcel = match *sent {
            Sent::Records(parcel) => parcel,
            Sent::Tick => {
                self.tick_waits.store(false, Ordering::Relaxed);
                match result {
                    Ok(_) => self.ticks_are_down.store(false, Ordering::Relaxed),
                    Err((error, _)) => self.lose_tick(error),
                }
                return;
            }
        };
        match result {
            Ok(message) => {
                let (partition, offset) = (message.partition(), message.offset());
                self.account().arrive(&parcel, partition, offset);
                self.messages.fetch_add(1, Ordering::Relaxed);
                let bytes = message.payload_len() as u64;
                self.bytes.fetch_add(bytes, Ordering::Relaxed);
                if self.is_down.swap(false, Ordering::Relaxed) {
                    (self.observe)(&self.place, &SendEvent::Back);
                }
            }
            Err((error, _)) => {
                match is_purged(error) {
                    // The reason why the message was still waiting was reported before.
                    true => self.account().lose(&parcel),
                    false => self.lose(&parcel, &error.to_string()),
                }
            }
        }
    }

    fn get_custom_partitioner(&self) -> Option<&Lanes> {
        Some(&self.lanes)
    }
}
