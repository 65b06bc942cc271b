// SPDX-License-Identifier: Apache-2.0
//! Writes rows of the table of verdicts, many in one system call.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use libbpf_rs::{Object, ProgramInput};

use crate::KernelError;
use crate::memory::SharedMemory;
use crate::object::{ORDERS_NAME, shared_memory};
use crate::offload::FlowWords;

/// Maximum number of orders in one system call: `ORDERS` in `bpf/orders.h`.
const ORDERS: usize = 4_096;
/// Words of `struct order` in `bpf/orders.h`.
const ORDER_WORDS: usize = 7;
/// Size of `struct job` in `bpf/orders.h`.
const JOB_BYTES: usize = 32;

/// What to do with a row: `enum order_kind` in `bpf/orders.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum RowOrderKind {
    /// Adds a row. An existing row stays as it is.
    #[default]
    Add,
    /// Changes the verdict of a row.
    Change,
    /// Removes a row.
    Remove,
    /// Removes a row if its flow was silent for too long, or has been over for long enough.
    Age,
}

/// An order about one row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowOrder {
    /// The flow.
    pub flow: FlowWords,
    /// Action and rule of the verdict: the lower half of a word in `bpf/verdict.h`.
    pub verdict: u32,
    /// What to do.
    pub kind: RowOrderKind,
}

/// The result of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowResult {
    /// The order was carried out.
    Done,
    /// For `Add`: there is already a row, which stays as it is.
    Exists,
    /// For `Change`, `Remove` and `Age`: there is no row.
    Absent,
    /// For `Age`: neither limit is exceeded, and the row stays.
    Stays {
        /// The time of the flow's last packet, in nanoseconds since 1970, up to 0.13 s early.
        seen_ns: u64,
    },
    /// For `Add`: the table is full.
    Full,
    /// The kernel refused, with this error number.
    Failed(i32),
}

/// The limits of [`RowOrderKind::Age`], in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerdictTimes {
    /// How long a flow may be silent.
    pub idle_ns: u64,
    /// How long a row stays after the end of its connection.
    pub linger_ns: u64,
}

/// Writes rows. There must be only one, because a row is read and written in separate steps.
pub struct VerdictTable {
    object: Arc<Object>,
    orders: SharedMemory,
}

impl VerdictTable {
    pub(super) fn open(object: Arc<Object>) -> Result<Self, KernelError> {
        Ok(Self {
            orders: shared_memory(&object, "orders")?,
            object,
        })
    }

    /// Carries out orders, and appends the result of each. Returns the kernel's time, in
    /// nanoseconds since 1970, on the clock that packets are stamped with.
    ///
    /// # Errors
    /// Where the kernel does not run the program. If an order fails, that is its result and not an
    /// error.
    pub fn carry_out(
        &mut self,
        orders: &[RowOrder],
        times: VerdictTimes,
        results: &mut Vec<RowResult>,
    ) -> Result<u64, KernelError> {
        let mut now_ns = 0;
        // Without orders, the program only returns the time.
        let empty = orders.is_empty().then_some(orders);
        for some in orders.chunks(ORDERS).chain(empty) {
            for (row, order) in self.orders.words().chunks_exact(ORDER_WORDS).zip(some) {
                let ends = [u64::from(order.verdict), order.kind as u64];
                for (word, value) in row.iter().zip(order.flow.into_iter().chain(ends)) {
                    word.store(value, Ordering::Relaxed);
                }
            }
            now_ns = self.run(some.len(), times)?;
            let rows = self.orders.words().chunks_exact(ORDER_WORDS).zip(some);
            results.extend(rows.map(|(row, _)| {
                let told = row[5].load(Ordering::Relaxed);
                let result = (row[6].load(Ordering::Relaxed) >> 32) as i32;
                result_of(result, told)
            }));
        }
        Ok(now_ns)
    }

    fn run(&self, count: usize, times: VerdictTimes) -> Result<u64, KernelError> {
        let mut job = [0; JOB_BYTES];
        let words = [count as u64, times.idle_ns, times.linger_ns];
        for (bytes, word) in job.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        let program = self
            .object
            .progs_mut()
            .find(|program| program.name() == ORDERS_NAME)
            .ok_or(KernelError::Incomplete { name: ORDERS_NAME })?;
        let input = ProgramInput {
            context_in: Some(&mut job),
            ..Default::default()
        };
        program
            .test_run(input)
            .map_err(KernelError::refused("carry out orders about verdicts"))?;
        let now_ns = job.last_chunk().copied().unwrap_or_default();
        Ok(u64::from_ne_bytes(now_ns))
    }
}

/// The error numbers are from asm-generic/errno-base.h.
const fn result_of(result: i32, told: u64) -> RowResult {
    /// The bits of a time that record the ends of a connection, `SEEN_ENDS` in `bpf/verdict.h`.
    const SEEN_ENDS: u64 = 7;
    match result {
        0 => RowResult::Done,
        -2 => RowResult::Absent,
        -7 => RowResult::Full,
        -11 => RowResult::Stays {
            seen_ns: told & !SEEN_ENDS,
        },
        -17 => RowResult::Exists,
        other => RowResult::Failed(other),
    }
}
