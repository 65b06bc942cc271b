// SPDX-License-Identifier: Apache-2.0
//! The loop of the process that inspects.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use crate::message::reply::MAX_ORDER_BYTES;
use crate::message::{Answer, Order, WorkerLimits, split};
use crate::ndpi::NdpiInspector;
use crate::worker::Worker;
use crate::{Inspector, NOT_THIS_LIBRARY};

/// Bytes read at once.
const READ_BYTES: usize = 1 << 18;

/// Processes orders from standard input until it is closed.
pub(super) fn serve() -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Uses this copy of the socket, so that no other descriptor is open and files can be limited to
    // the standard streams.
    let outcome = prepare(&socket).and_then(|(worker, orders)| run(worker, orders, &socket));
    if let Err(error) = &outcome {
        let mut answer = Vec::new();
        Answer::Failed(error.to_string()).write(&mut answer);
        // The meter may have ended.
        let _ = (&socket).write_all(&answer);
    }
    outcome
}

/// Orders that have been read but not processed.
struct Orders {
    bytes: Vec<u8>,
    /// Number of valid bytes in `bytes`.
    filled: usize,
}

impl Orders {
    fn new() -> Self {
        Self {
            bytes: vec![0; READ_BYTES + MAX_ORDER_BYTES],
            filled: 0,
        }
    }

    /// Reads what is available, or waits for it. Returns false at the end.
    fn read(&mut self, mut socket: &UnixStream) -> io::Result<bool> {
        let count = loop {
            match socket.read(&mut self.bytes[self.filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome?,
            }
        };
        self.filled += count;
        Ok(count > 0)
    }

    /// Calls `take` with each complete order.
    fn each(&mut self, mut take: impl FnMut(&Order<'_>)) -> io::Result<()> {
        let damaged = || io::Error::other("an order of the meter is damaged");
        let mut rest = &self.bytes[..self.filled];
        while let Some((message, behind)) = split(rest, MAX_ORDER_BYTES).map_err(|()| damaged())? {
            take(&Order::read(message).ok_or_else(damaged)?);
            rest = behind;
        }
        let left = rest.len();
        let start = self.filled - left;
        self.bytes.copy_within(start..self.filled, 0);
        self.filled = left;
        Ok(())
    }
}

/// Sets up the library and drops the privileges of the process. The first order is read before
/// that.
fn prepare(socket: &UnixStream) -> io::Result<(Worker<NdpiInspector>, Orders)> {
    let mut orders = Orders::new();
    let mut limits = None;
    let mut held = Vec::new();
    while limits.is_none() && orders.read(socket)? {
        orders.each(|order| match order {
            Order::Begin(its) => limits = Some(*its),
            // The meter sends packets without waiting; they are processed later.
            order => order.write(&mut held),
        })?;
    }
    let limits: WorkerLimits = limits.unwrap_or_default();
    super::confine::limit(limits.memory_bytes)?;
    let inspector = NdpiInspector::new().ok_or_else(|| io::Error::other(NOT_THIS_LIBRARY))?;
    let mut answer = Vec::new();
    Answer::Ready(inspector.names()).write(&mut answer);
    super::confine::seal()?;
    let mut writer = socket;
    writer.write_all(&answer)?;
    let mut rest = orders.bytes[..orders.filled].to_vec();
    held.append(&mut rest);
    orders.filled = held.len();
    let room = held.len().max(READ_BYTES) + MAX_ORDER_BYTES;
    held.resize(room, 0);
    orders.bytes = held;
    Ok((Worker::new(inspector, limits), orders))
}

fn run(
    mut worker: Worker<NdpiInspector>,
    mut orders: Orders,
    mut socket: &UnixStream,
) -> io::Result<()> {
    let mut answers = Vec::new();
    loop {
        answers.clear();
        orders.each(|order| worker.take(order, &mut answers))?;
        worker.tell_progress(&mut answers);
        socket.write_all(&answers)?;
        if worker.is_spent() || !orders.read(socket)? {
            return Ok(());
        }
    }
}
