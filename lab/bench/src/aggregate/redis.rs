// SPDX-License-Identifier: Apache-2.0
//! The paper's other baseline (TurboFlow, section 6.3): a Redis server as aggregator. Each flow is
//! one hash, and each record takes two `HINCRBY` commands (packets and bytes), pipelined over a
//! local connection.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use turboflow_merge::MicroflowRecord;
use turboflow_record::WORDS_V4;

use crate::microflows::{BATCH, Microflows};
use crate::{Options, Row, Spread, Timer};

/// Number of records. Redis is so slow that this many are enough.
const ITEMS: u64 = 200_000;
/// Maximum number of flows; with more, the server's memory would be the limit.
const FLOWS_MAX: u64 = 1_000_000;

/// Measures a server. `None` if no server answers, or if there are more than [`FLOWS_MAX`] flows.
pub(super) fn measure(flows: u64, spread: Spread, options: &Options) -> Option<Row> {
    if flows > FLOWS_MAX {
        return None;
    }
    let mut connection = Connection::open(&options.redis)?;
    let mut microflows = Microflows::new(flows, spread);
    let mut batch: Vec<MicroflowRecord<WORDS_V4, 0>> = Vec::with_capacity(BATCH);
    let mut timer = Timer::default();
    let batches = ITEMS.div_ceil(BATCH as u64);
    for _ in 0..batches {
        microflows.fill(&mut batch);
        timer.time(|| connection.merge(&batch))?;
    }
    connection.forget()?;
    let items = batches * BATCH as u64;
    Some(Row::new(
        "aggregate",
        "redis",
        flows,
        spread.name(),
        items,
        timer.total(),
    ))
}

struct Connection {
    stream: TcpStream,
    replies: BufReader<TcpStream>,
    commands: String,
}

impl Connection {
    fn open(address: &str) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).ok()?;
        let replies = BufReader::new(stream.try_clone().ok()?);
        let mut connection = Self {
            stream,
            replies,
            commands: String::new(),
        };
        // Database 15 is the last of Redis's sixteen default databases. It is emptied afterwards,
        // so it is used only if it is empty.
        connection.commands.push_str("SELECT 15\r\nDBSIZE\r\n");
        connection.send(1)?;
        let mut keys = String::new();
        connection.replies.read_line(&mut keys).ok()?;
        (keys.trim_end() == ":0").then_some(connection)
    }

    fn merge(&mut self, batch: &[MicroflowRecord<WORDS_V4, 0>]) -> Option<()> {
        for record in batch {
            let [high, low] = record.key;
            let (packets, bytes) = (record.base.packets, record.base.bytes);
            write!(
                self.commands,
                "HINCRBY {high:x}{low:x} p {packets}\r\nHINCRBY {high:x}{low:x} b {bytes}\r\n"
            )
            .ok()?;
        }
        self.send(2 * batch.len())
    }

    fn forget(&mut self) -> Option<()> {
        self.commands.push_str("FLUSHDB\r\n");
        self.send(1)
    }

    /// Sends the collected commands and reads that many replies.
    fn send(&mut self, replies: usize) -> Option<()> {
        self.stream.write_all(self.commands.as_bytes()).ok()?;
        self.commands.clear();
        let mut line = String::new();
        for _ in 0..replies {
            line.clear();
            self.replies.read_line(&mut line).ok()?;
            if !line.starts_with([':', '+']) {
                return None;
            }
        }
        Some(())
    }
}
