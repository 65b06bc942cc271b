// SPDX-License-Identifier: Apache-2.0
//! The writer: librdkafka's idempotent producer, and what became of every record.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode};
use rdkafka::producer::{
    BaseProducer, BaseRecord, DeliveryResult, Partitioner, Producer, ProducerContext, PurgeConfig,
};
use turboflow_formats::{
    ExportError, FlowWriter, SendGauge, SendSnapshot, Unexportable, WriteSummary,
};
use turboflow_record::FlowBatch;
use turboflow_transport::{ObserveSending, SendEvent, SendOptions};

use crate::encode::{Encoder, Message};
use crate::lanes::partition_of;
use crate::{KafkaError, KafkaOptions, KafkaTarget, Mechanism, Records};

/// Messages and bytes that wait for the brokers at most.
const QUEUE_MESSAGES: u64 = 500_000;
const QUEUE_BYTES: u64 = 64 << 20;
/// How long a full queue is left alone before it is tried again.
const PAUSE: Duration = Duration::from_millis(10);
/// How long the last answers of the client are waited for, once it was told to give up.
const PURGE_PATIENCE: Duration = Duration::from_secs(1);

type Client = BaseProducer<Deliveries, Lanes>;

/// Puts each lane into one partition.
struct Lanes;

impl Partitioner for Lanes {
    fn partition(
        &self,
        _topic: &str,
        key: Option<&[u8]>,
        partitions: i32,
        _is_available: impl Fn(i32) -> bool,
    ) -> i32 {
        partition_of(key.unwrap_or_default(), partitions)
    }
}

/// What became of messages. Told by the client on the thread that polls it.
struct Deliveries {
    place: String,
    observe: ObserveSending,
    records: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
    is_down: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl Deliveries {
    fn new(place: String, observe: ObserveSending) -> Self {
        Self {
            place,
            observe,
            records: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            is_down: AtomicBool::new(false),
            failure: Mutex::default(),
        }
    }

    /// Counts records as lost.
    fn lose(&self, records: u64, reason: &str) {
        self.lost.fetch_add(records, Ordering::Relaxed);
        self.fail(reason);
    }

    fn fail(&self, reason: &str) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        *failure = Some(reason.to_owned());
    }

    fn failure(&self) -> Option<io::Error> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure
            .as_ref()
            .map(|reason| io::Error::other(reason.clone()))
    }

    /// Records that have an end, good or bad.
    fn done(&self) -> u64 {
        self.records.load(Ordering::Relaxed) + self.lost.load(Ordering::Relaxed)
    }
}

impl ClientContext for Deliveries {
    /// The program has its own words for what happens.
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
        self.fail(reason);
        if is_down && !self.is_down.swap(true, Ordering::Relaxed) {
            let reason = io::Error::other(reason.to_owned());
            (self.observe)(&self.place, &SendEvent::Lost(&reason));
        }
    }
}

impl ProducerContext<Lanes> for Deliveries {
    /// The records of the message.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, records: usize) {
        match result {
            Ok(message) => {
                self.records.fetch_add(records as u64, Ordering::Relaxed);
                self.messages.fetch_add(1, Ordering::Relaxed);
                let bytes = message.payload_len() as u64;
                self.bytes.fetch_add(bytes, Ordering::Relaxed);
                if self.is_down.swap(false, Ordering::Relaxed) {
                    (self.observe)(&self.place, &SendEvent::Back);
                }
            }
            Err((error, _)) => {
                let is_purged = matches!(
                    error.rdkafka_error_code(),
                    Some(RDKafkaErrorCode::PurgeQueue | RDKafkaErrorCode::PurgeInflight)
                );
                match is_purged {
                    // Why it waited in vain was told before.
                    true => self.lost.fetch_add(records as u64, Ordering::Relaxed),
                    false => {
                        self.lose(records as u64, &error.to_string());
                        0
                    }
                };
            }
        }
    }

    fn get_custom_partitioner(&self) -> Option<&Lanes> {
        Some(&Lanes)
    }
}

/// A [`FlowWriter`] to a topic.
struct KafkaWriter {
    place: String,
    topic: Topic,
    encoder: Encoder,
    gauge: Arc<SendGauge>,
}

/// The client, and what it was given.
struct Topic {
    client: Client,
    name: String,
    send: SendOptions,
    /// Records given to the client, or lost before that.
    given: u64,
    /// When the full queue was first found without progress; `None` while it has room.
    stuck_at: Option<Duration>,
}

pub(crate) fn send_to(
    target: &KafkaTarget,
    records: &Records<'_>,
    options: &KafkaOptions,
) -> Result<Box<dyn FlowWriter>, KafkaError> {
    let place = target.to_string();
    let encoder = Encoder::new(target, records)?;
    let context = Deliveries::new(place.clone(), options.send.observe);
    let client = configuration(target, options).create_with_context(context);
    let client = client.map_err(|error: ClientError| KafkaError::Config {
        place: place.clone(),
        reason: error.to_string(),
    })?;
    let writer = KafkaWriter {
        place,
        topic: Topic {
            client,
            name: target.topic.clone(),
            send: options.send.clone(),
            given: 0,
            stuck_at: None,
        },
        encoder,
        gauge: Arc::default(),
    };
    writer.show();
    Ok(Box::new(writer))
}

fn configuration(target: &KafkaTarget, options: &KafkaOptions) -> ClientConfig {
    let mut config = ClientConfig::new();
    let login = target.login.as_ref();
    let protocol = match (target.is_tls, login.is_some()) {
        (false, false) => "plaintext",
        (true, false) => "ssl",
        (false, true) => "sasl_plaintext",
        (true, true) => "sasl_ssl",
    };
    config
        .set("bootstrap.servers", target.brokers.join(","))
        .set("client.id", "turboflow")
        .set("security.protocol", protocol)
        .set("compression.codec", target.codec.name())
        .set("acks", "all")
        .set("enable.idempotence", "true")
        // As long as the run goes on, a broker may come back.
        .set("message.timeout.ms", "0")
        .set("linger.ms", "50")
        .set("batch.size", "1000000")
        .set("queue.buffering.max.messages", QUEUE_MESSAGES.to_string())
        .set(
            "queue.buffering.max.kbytes",
            (QUEUE_BYTES >> 10).to_string(),
        )
        // A broker that is back is seen soon.
        .set("reconnect.backoff.max.ms", "2000")
        .set("socket.keepalive.enable", "true");
    if let Some(login) = login {
        let mechanism = match login.mechanism {
            Mechanism::Plain => "PLAIN",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
            Mechanism::ScramSha512 => "SCRAM-SHA-512",
        };
        let password = options.password.clone().unwrap_or_default();
        config
            .set("sasl.mechanism", mechanism)
            .set("sasl.username", &login.user)
            .set("sasl.password", password);
    }
    if let (true, Some(authorities)) = (target.is_tls, &options.tls.authorities) {
        config.set("ssl.ca.pem", authorities);
    }
    if let (true, Some((certificate, key))) = (target.is_tls, &options.tls.client) {
        config
            .set("ssl.certificate.pem", certificate)
            .set("ssl.key.pem", key);
    }
    config
}

impl Topic {
    fn deliveries(&self) -> &Deliveries {
        self.client.context()
    }

    fn now(&self) -> Duration {
        (self.send.clock.monotonic)()
    }

    /// Gives the client a message, or counts its records as lost if it has no room.
    fn put(&mut self, message: Message<'_>) {
        let records = message.totals.records;
        self.given += records;
        let mut done = self.deliveries().done();
        let mut since = self.now();
        loop {
            let record = BaseRecord::with_opaque_to(&self.name, records as usize)
                .key(message.key)
                .payload(message.bytes);
            match self.client.send(record) {
                Ok(()) => {
                    self.stuck_at = None;
                    return;
                }
                Err((error, _)) if is_full(&error) => {
                    self.client.poll(Duration::ZERO);
                    let is_moving = self.deliveries().done() > done;
                    if is_moving {
                        (done, since) = (self.deliveries().done(), self.now());
                        self.stuck_at = None;
                        continue;
                    }
                    // A queue that stood still for that long is not waited for again.
                    let waited = self.now().saturating_sub(since);
                    if self.stuck_at.is_some() || waited >= self.send.patience {
                        self.stuck_at.get_or_insert(since);
                        self.deliveries()
                            .lose(records, "the queue to the brokers is full");
                        return;
                    }
                    self.client.poll(PAUSE);
                }
                Err((error, _)) => {
                    self.deliveries().lose(records, &error.to_string());
                    return;
                }
            }
        }
    }

    /// Waits until every message has its end, at most as long as shutdown may take; the rest is
    /// lost.
    fn finish(&mut self) {
        let begin = self.now();
        let (mut done, mut progress_at) = (self.deliveries().done(), begin);
        while self.client.in_flight_count() > 0 {
            self.client.poll(PAUSE);
            let now = self.now();
            if self.deliveries().done() > done {
                (done, progress_at) = (self.deliveries().done(), now);
            }
            let is_late = |deadline| now.saturating_sub(begin) >= deadline;
            if now.saturating_sub(progress_at) >= self.send.linger
                || self.send.deadline.is_some_and(is_late)
            {
                break;
            }
        }
        if self.client.in_flight_count() == 0 {
            return;
        }
        self.client.purge(PurgeConfig::default().queue().inflight());
        let begin = self.now();
        while self.client.in_flight_count() > 0 && self.now().saturating_sub(begin) < PURGE_PATIENCE
        {
            self.client.poll(PAUSE);
        }
    }
}

fn is_full(error: &ClientError) -> bool {
    error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull)
}

impl KafkaWriter {
    fn show(&self) {
        let deliveries = self.topic.deliveries();
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (records, lost) = (of(&deliveries.records), of(&deliveries.lost));
        self.gauge.show(SendSnapshot {
            records_sent: records,
            records_in_flight: self.topic.given.saturating_sub(records + lost),
            records_lost: lost + self.encoder.out_of_range(),
            messages: of(&deliveries.messages),
            bytes: of(&deliveries.bytes),
            connections: 0,
            is_up: !deliveries.is_down.load(Ordering::Relaxed),
            queue_bytes: 0,
        });
    }

    fn flush_lanes(&mut self) {
        let Self { encoder, topic, .. } = self;
        encoder.flush(&mut |message| topic.put(message));
    }
}

impl FlowWriter for KafkaWriter {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        let Self { encoder, topic, .. } = self;
        encoder.encode(batch, &mut |message| topic.put(message));
        topic.client.poll(Duration::ZERO);
        self.show();
        Ok(())
    }

    /// Sends what waits for further records.
    fn flush(&mut self) -> Result<(), ExportError> {
        self.flush_lanes();
        self.topic.client.poll(Duration::ZERO);
        self.show();
        Ok(())
    }

    fn is_failing(&self) -> bool {
        let is_down = self.topic.deliveries().is_down.load(Ordering::Relaxed);
        is_down || self.topic.stuck_at.is_some()
    }

    fn sending(&self) -> Option<Arc<SendGauge>> {
        Some(Arc::clone(&self.gauge))
    }

    fn finish(mut self: Box<Self>) -> Result<WriteSummary, ExportError> {
        self.flush_lanes();
        self.topic.finish();
        let deliveries = self.topic.deliveries();
        let records = deliveries.records.load(Ordering::Relaxed);
        let bytes = deliveries.bytes.load(Ordering::Relaxed);
        // What has no end is not known to have arrived.
        let lost = self.topic.given - records;
        let without_end = lost - deliveries.lost.load(Ordering::Relaxed);
        deliveries.lost.fetch_add(without_end, Ordering::Relaxed);
        self.show();
        let out_of_range = self.encoder.out_of_range();
        if lost == 0 && out_of_range == 0 {
            return Ok(WriteSummary { records, bytes });
        }
        Err(ExportError::NotSent {
            place: self.place.clone(),
            records,
            bytes,
            lost,
            unexportable: Unexportable {
                out_of_range,
                ..Unexportable::default()
            },
            source: deliveries.failure().filter(|_| lost > 0),
        })
    }
}
