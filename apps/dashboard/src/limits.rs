// SPDX-License-Identifier: Apache-2.0
//! Limits on the work and the memory that clients can cause.

use std::time::Duration;

/// Bounds on requests and connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of rows in an answer.
    pub rows: usize,
    /// Maximum number of groups of a question; a group takes about a hundred bytes. Questions that
    /// are answered together may use twice as many.
    pub groups: usize,
    /// Maximum number of flow records for a plan, at about 50 bytes each.
    pub plan_records: usize,
    /// Maximum time for all questions of a request together.
    pub answer_time: Duration,
    /// Maximum size of the answers to a request, in bytes.
    pub answer_bytes: usize,
    /// Maximum size of a request body, in bytes.
    pub body_bytes: usize,
    /// Maximum number of questions in a request.
    pub panels: usize,
    /// Number of threads that answer questions.
    pub threads: usize,
    /// Maximum number of requests with questions that are waiting or being answered; more are
    /// refused.
    pub requests: usize,
    /// Maximum number of open connections; more are closed.
    pub connections: usize,
    /// Maximum number of connections that are event streams.
    pub streams: usize,
    /// Maximum time from one request to the head of the next, and for the body.
    pub receive_time: Duration,
    /// Maximum time that a client may leave sent data unread.
    pub send_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rows: 10_000,
            groups: 4_000_000,
            plan_records: 4_000_000,
            answer_time: Duration::from_secs(20),
            answer_bytes: 16 << 20,
            body_bytes: 64 << 10,
            panels: 16,
            threads: 2,
            requests: 16,
            connections: 64,
            streams: 16,
            receive_time: Duration::from_secs(10),
            send_time: Duration::from_secs(20),
        }
    }
}
