// SPDX-License-Identifier: Apache-2.0
//! Shards on threads of their own, behind bounded queues.
//!
//! A full queue blocks the front. So a file is never read faster than it is metered, and memory
//! stays bounded. Emptied batches go back to the front, so nothing is allocated after the queues
//! have been filled once.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::{io, mem};

use turboflow_aggregate::Cell;
use turboflow_merge::MicroflowRecord;
use turboflow_record::WORDS_V4;

use turboflow_engine::PacketEngines;

use crate::batch::{ShardBatch, batch_records};
use crate::feed::FinishShards;
use crate::feed::Shards;
use crate::shard::{Shard, ShardReport};

/// Upper limit of the IPv4 packets queued for all shards, in bytes. This is a millisecond of work,
/// which is longer than the front takes to read the next piece of a file.
const QUEUE_BYTES: usize = 2 << 20;
/// Two, so that one batch is metered while the next one arrives.
const MIN_QUEUE_BATCHES: usize = 2;

/// Upper limit of batches queued for each of `shards`. Few batches are queued if records are large.
fn queue_batches<const N: usize>(shards: usize) -> usize {
    let batch_bytes = batch_records::<N>() * size_of::<MicroflowRecord<WORDS_V4, N>>();
    (QUEUE_BYTES / batch_bytes / shards).max(MIN_QUEUE_BATCHES)
}

enum Work<const N: usize> {
    Packets(ShardBatch<N>),
    Enter(Cell),
    SetBack(Cell),
    Report(SyncSender<ShardReport>),
}

struct Worker<const N: usize> {
    work: SyncSender<Work<N>>,
    empty: Receiver<ShardBatch<N>>,
    thread: JoinHandle<ShardReport>,
}

pub(crate) struct ThreadedShards<const N: usize> {
    workers: Vec<Worker<N>>,
}

impl<const N: usize> ThreadedShards<N> {
    /// Starts one thread per shard. Each thread builds its own shard, so that its memory is on its
    /// NUMA node.
    ///
    /// # Errors
    /// If the system refuses a thread. Threads that have already started are ended.
    pub(crate) fn start<F, M>(makers: impl ExactSizeIterator<Item = M>) -> io::Result<Self>
    where
        F: PacketEngines,
        M: FnOnce() -> Shard<F, N> + Send + 'static,
    {
        let queue_batches = queue_batches::<N>(makers.len());
        let mut shards = Self {
            workers: Vec::with_capacity(makers.len()),
        };
        for (shard, make) in makers.enumerate() {
            let (work, incoming) = sync_channel(queue_batches);
            let (give_back, empty) = sync_channel(queue_batches + 2);
            let thread = std::thread::Builder::new()
                .name(format!("shard-{shard}"))
                .spawn(move || run(make(), &incoming, &give_back));
            match thread {
                Ok(thread) => shards.workers.push(Worker {
                    work,
                    empty,
                    thread,
                }),
                Err(refused) => {
                    // Ends the other shards, so that they release their outputs.
                    shards.finish();
                    return Err(refused);
                }
            }
        }
        Ok(shards)
    }

    fn send(&self, shard: usize, work: Work<N>) {
        self.workers[shard]
            .work
            .send(work)
            .expect("a shard works until its queue is closed");
    }
}

fn run<F: PacketEngines, const N: usize>(
    mut shard: Shard<F, N>,
    incoming: &Receiver<Work<N>>,
    give_back: &SyncSender<ShardBatch<N>>,
) -> ShardReport {
    while let Ok(work) = incoming.recv() {
        match work {
            Work::Packets(mut batch) => {
                shard.take(&batch);
                batch.clear();
                // Dropped if the front has ended, or has enough empty batches.
                let _ = give_back.try_send(batch);
            }
            Work::Enter(cell) => shard.enter(cell),
            Work::SetBack(cell) => shard.set_back(cell),
            Work::Report(asked) => {
                // An error means that the requester is no longer waiting.
                let _ = asked.send(shard.report());
            }
        }
    }
    shard.flush();
    shard.report()
}

impl<const N: usize> Shards<N> for ThreadedShards<N> {
    fn take(&mut self, shard: usize, batch: &mut ShardBatch<N>) {
        let empty = self.workers[shard]
            .empty
            .try_recv()
            .unwrap_or(ShardBatch::new());
        self.send(shard, Work::Packets(mem::replace(batch, empty)));
    }

    fn enter(&mut self, cell: Cell) {
        (0..self.workers.len()).for_each(|shard| self.send(shard, Work::Enter(cell)));
    }

    fn set_back(&mut self, cell: Cell) {
        (0..self.workers.len()).for_each(|shard| self.send(shard, Work::SetBack(cell)));
    }
}

impl<const N: usize> FinishShards for ThreadedShards<N> {
    fn snapshot(&mut self) -> ShardReport {
        let (asked, answers) = sync_channel(self.workers.len());
        (0..self.workers.len()).for_each(|shard| self.send(shard, Work::Report(asked.clone())));
        drop(asked);
        let mut total = ShardReport::default();
        answers.iter().for_each(|report| total.merge(&report));
        total
    }

    fn finish(self) -> ShardReport {
        let mut total = ShardReport::default();
        for Worker {
            work,
            empty,
            thread,
        } in self.workers
        {
            drop((work, empty));
            match thread.join() {
                Ok(report) => total.merge(&report),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        total
    }
}
