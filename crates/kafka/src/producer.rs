// SPDX-License-Identifier: Apache-2.0
//! The writer: librdkafka's idempotent producer, and the counts of records that were delivered or
//! lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, PurgeConfig};
use turboflow_formats::{
    ExportError, FlowWriter, Passed, SendGauge, SendSnapshot, Unexportable, WriteSummary,
};
use turboflow_record::FlowBatch;
use turboflow_transport::SendOptions;

use crate::deliveries::{Deliveries, Lanes, Sent};
use crate::encode::{Encoder, Message};
use crate::tick::{TickHead, write_lines};
use crate::{KafkaError, KafkaOptions, KafkaTarget, Mechanism, Records};

/// Maximum numbers of messages and of bytes in the client's queue.
const QUEUE_MESSAGES: u64 = 500_000;
const QUEUE_BYTES: u64 = 64 << 20;
/// Pause before a full queue is tried again.
const PAUSE: Duration = Duration::from_millis(10);
/// How often a tick is sent.
const TICK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum wait for the delivery reports of discarded messages.
const PURGE_PATIENCE: Duration = Duration::from_secs(1);

type Client = BaseProducer<Deliveries, Lanes>;

/// A [`FlowWriter`] to a topic.
struct KafkaWriter {
    place: String,
    topic: Topic,
    encoder: Encoder,
    gauge: Arc<SendGauge>,
    ticks: Option<Ticks>,
}

/// The ticks of a topic.
struct Ticks {
    /// The topic that the ticks are sent to.
    topic: String,
    /// The common fields of the last tick.
    head: TickHead,
    next_at: Duration,
    /// The highest watermark that has been sent.
    announced_ns: u64,
    passed: Passed,
}

/// The client, and what has been given to it.
struct Topic {
    client: Client,
    name: String,
    send: SendOptions,
    /// Number of records that were given to the client, or lost before that.
    given: u64,
    /// When the client's queue was first found full without progress; `None` while it has room.
    stuck_at: Option<Duration>,
}

pub(crate) fn send_to(
    target: &KafkaTarget,
    records: &Records<'_>,
    options: &KafkaOptions,
) -> Result<Box<dyn FlowWriter>, KafkaError> {
    let place = target.to_string();
    let encoder = Encoder::new(target, records)?;
    let context = Deliveries::new(target, options);
    let client = configuration(target, options).create_with_context(context);
    let client = client.map_err(|error: ClientError| KafkaError::Config {
        place: place.clone(),
        reason: error.to_string(),
    })?;
    let head = TickHead {
        exporter: records.identity.exporter().to_owned(),
        run: records.identity.run(),
        topic: target.topic.clone(),
        tick: 0,
        time_ns: 0,
        is_final: false,
        late_records: 0,
    };
    let writer = KafkaWriter {
        place,
        ticks: target.ticks.clone().map(|topic| Ticks {
            topic,
            head,
            next_at: Duration::ZERO,
            announced_ns: 0,
            passed: Passed::default(),
        }),
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
        // Messages do not expire, because a broker may come back during the run.
        .set("message.timeout.ms", "0")
        .set("linger.ms", "50")
        .set("batch.size", "1000000")
        .set("queue.buffering.max.messages", QUEUE_MESSAGES.to_string())
        .set(
            "queue.buffering.max.kbytes",
            (QUEUE_BYTES >> 10).to_string(),
        )
        // Reconnects soon after a broker has come back.
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

    /// Gives a message to the client; if the client has no room, counts its records as lost.
    fn put(&mut self, message: Message<'_>) {
        self.given += message.totals.records;
        let parcel = self.deliveries().account().send(message.totals);
        let mut record = BaseRecord::with_opaque_to(&self.name, Box::new(Sent::Records(parcel)))
            .key(message.key)
            .payload(message.bytes);
        let mut done = self.deliveries().done();
        let mut since = self.now();
        loop {
            match self.client.send(record) {
                Ok(()) => {
                    self.stuck_at = None;
                    return;
                }
                Err((error, refused)) if is_full(&error) => {
                    record = refused;
                    self.client.poll(Duration::ZERO);
                    let is_moving = self.deliveries().done() > done;
                    if is_moving {
                        (done, since) = (self.deliveries().done(), self.now());
                        self.stuck_at = None;
                        continue;
                    }
                    // After that long without progress, later messages do not wait.
                    let waited = self.now().saturating_sub(since);
                    if self.stuck_at.is_some() || waited >= self.send.patience {
                        self.stuck_at.get_or_insert(since);
                        self.deliveries()
                            .lose(&parcel, "the queue to the brokers is full");
                        return;
                    }
                    self.client.poll(PAUSE);
                }
                Err((error, _)) => {
                    self.deliveries().lose(&parcel, &error.to_string());
                    return;
                }
            }
        }
    }

    /// Sends a tick. If the client has no room, it is dropped: the next tick covers it.
    fn put_tick(&self, topic: &str, exporter: &str, lines: &[u8]) -> bool {
        self.deliveries().tick_waits.store(true, Ordering::Relaxed);
        let record = BaseRecord::with_opaque_to(topic, Box::new(Sent::Tick))
            .key(exporter)
            .payload(lines);
        let refused = self.client.send(record).err().map(|(error, _)| error);
        let is_sent = refused.is_none();
        self.deliveries()
            .tick_waits
            .store(is_sent, Ordering::Relaxed);
        // A full queue empties again. Other errors, such as too many lines for a message, will
        // persist.
        if let Some(error) = refused
            && !is_full(&error)
        {
            self.deliveries().lose_tick(&error);
        }
        is_sent
    }

    /// Waits until every message is delivered or lost, at most for as long as a shutdown that began
    /// at `begin` may take. Returns whether no message is left.
    fn settle(&self, begin: Duration) -> bool {
        let (mut done, mut progress_at) = (self.deliveries().done(), self.now());
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
                return self.client.in_flight_count() == 0;
            }
        }
        true
    }

    /// Discards the messages that still wait; their records count as lost.
    fn purge(&self) {
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
        let (records, lost) = deliveries.ends();
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

    /// Counts the records with packets before a watermark that has already been announced.
    fn count_late(&mut self, batch: &FlowBatch) {
        if let Some(ticks) = &mut self.ticks
            && ticks.announced_ns > 0
        {
            ticks.head.late_records += self.encoder.records_before(ticks.announced_ns, batch);
        }
    }

    /// Sends a tick with what has arrived, unless the previous tick has not been delivered yet:
    /// while brokers are away, a new tick would only repeat it, and a later one covers both.
    fn tick(&mut self, is_final: bool) {
        self.flush_lanes();
        let Self { topic, ticks, .. } = self;
        let Some(ticks) = ticks else { return };
        topic.client.poll(Duration::ZERO);
        let deliveries = topic.deliveries();
        let mut lines = Vec::new();
        let announced_ns = {
            let mut account = deliveries.account();
            account.has_partitions(deliveries.partitions());
            account.mark(ticks.passed.watermark_ns);
            if is_final {
                account.close();
            }
            if deliveries.tick_waits.load(Ordering::Relaxed) {
                return;
            }
            let never_sent = ticks.passed.records_overrun + self.encoder.out_of_range();
            let head = TickHead {
                tick: ticks.head.tick + 1,
                time_ns: (topic.send.clock.wall_ms)().saturating_mul(1_000_000),
                is_final,
                ..ticks.head.clone()
            };
            if write_lines(&head, &account, never_sent, &mut lines).is_err() {
                return;
            }
            account.complete_ns
        };
        if topic.put_tick(&ticks.topic, &ticks.head.exporter, &lines) {
            ticks.head.tick += 1;
            ticks.announced_ns = announced_ns;
        }
    }
}

impl FlowWriter for KafkaWriter {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        self.count_late(batch);
        let Self { encoder, topic, .. } = self;
        encoder.encode(batch, &mut |message| topic.put(message));
        topic.client.poll(Duration::ZERO);
        self.show();
        Ok(())
    }

    /// Gives the unfinished messages to the client.
    fn flush(&mut self) -> Result<(), ExportError> {
        self.flush_lanes();
        self.topic.client.poll(Duration::ZERO);
        self.show();
        Ok(())
    }

    fn pass(&mut self, passed: Passed) -> Result<(), ExportError> {
        let now = self.topic.now();
        if let Some(ticks) = &mut self.ticks {
            // The watermark does not go back when a clock is set back.
            let watermark_ns = ticks.passed.watermark_ns.max(passed.watermark_ns);
            ticks.passed = Passed {
                watermark_ns,
                ..passed
            };
            if now >= ticks.next_at {
                ticks.next_at = now + TICK_INTERVAL;
                self.tick(false);
                self.show();
            }
        }
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
        let begin = self.topic.now();
        if self.topic.settle(begin) {
            self.tick(true);
            self.topic.settle(begin);
        }
        self.topic.purge();
        let deliveries = self.topic.deliveries();
        let (records, counted_lost) = deliveries.ends();
        let bytes = deliveries.bytes.load(Ordering::Relaxed);
        // A record without a delivery report is not known to have arrived.
        let lost = self.topic.given - records;
        deliveries.lose_without_end(lost - counted_lost);
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
