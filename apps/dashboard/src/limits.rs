// SPDX-License-Identifier: Apache-2.0
//! What clients can make the server do and keep.

use std::time::Duration;

/// Bounds on requests and connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most rows of an answer.
    pub rows: usize,
    /// Most groups that a question may make, of about a hundred bytes each. Questions that are
    /// answered together may make twice as many.
    pub groups: usize,
    /// Most flow records of a plan, of some 50 bytes each.
    pub plan_records: usize,
    /// Longest time for the questions of a request together.
    pub answer_time: Duration,
    /// Most bytes of the answers to a request.
    pub answer_bytes: usize,
    /// Most bytes of the body of a request.
    pub body_bytes: usize,
    /// Most questions of a request.
    pub panels: usize,
    /// Questions that are answered side by side; each has a thread.
    pub threads: usize,
    /// Requests with questions that wait or are answered; further ones are refused.
    pub requests: usize,
    /// Open connections; further ones are closed.
    pub connections: usize,
    /// Streams of events among them.
    pub streams: usize,
    /// Longest time from one request to the head of the next, and for the body.
    pub receive_time: Duration,
    /// Longest time that a client may leave unread what it was sent.
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
