// SPDX-License-Identifier: Apache-2.0
//! The counters of a running program, read from its metrics once a second.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Interval between reads.
const EVERY: Duration = Duration::from_secs(1);
/// Time limit for a response.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum size of a metrics page, in bytes.
const PAGE_BYTES: u64 = 1 << 20;
/// Number of samples kept for pages that are opened later. `SAMPLES_BYTES` limits their total size.
const SAMPLES: usize = 120;
const SAMPLES_BYTES: usize = 1 << 20;
/// The prefix of all metric names.
const PREFIX: &str = "turboflow_";
/// A counter that every run exports.
const RECEIVED: &str = "packets_received_total";

/// A running program.
pub(crate) struct Live {
    address: String,
    history: Mutex<History>,
    last: watch::Sender<Arc<str>>,
}

impl Live {
    pub(crate) fn new(address: String) -> Self {
        Self {
            address,
            history: Mutex::default(),
            last: watch::Sender::new("null".into()),
        }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The samples of the last two minutes, oldest first, each as JSON text.
    pub(crate) fn history(&self) -> Vec<Arc<str>> {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.samples.iter().cloned().collect()
    }

    /// Follows the newest sample.
    pub(crate) fn follow(&self) -> watch::Receiver<Arc<str>> {
        self.last.subscribe()
    }

    /// Reads the counters until the future is dropped.
    pub(crate) async fn run(&self) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for number in 0u64.. {
            ticks.tick().await;
            let page = tokio::time::timeout(PATIENCE, page(&self.address)).await;
            let sample = match page {
                Ok(Ok(text)) => match counters(&text) {
                    counters if counters.contains_key(RECEIVED) => {
                        json!({ "number": number, "counters": counters })
                    }
                    _ => json!({ "number": number, "error": "it has no metrics of a run" }),
                },
                Ok(Err(error)) => json!({ "number": number, "error": error.to_string() }),
                Err(_) => json!({ "number": number, "error": "no answer" }),
            };
            let text: Arc<str> = sample.to_string().into();
            let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
            history.keep(Arc::clone(&text));
            drop(history);
            self.last.send_replace(text);
        }
    }
}

/// The most recent samples.
#[derive(Default)]
struct History {
    samples: VecDeque<Arc<str>>,
    bytes: usize,
}

impl History {
    /// Appends a sample, and drops the oldest ones beyond the limits.
    fn keep(&mut self, sample: Arc<str>) {
        self.bytes += sample.len();
        self.samples.push_back(sample);
        while self.samples.len() > SAMPLES || self.bytes > SAMPLES_BYTES {
            let Some(oldest) = self.samples.pop_front() else {
                return;
            };
            self.bytes -= oldest.len();
        }
    }
}

/// Fetches the metrics page.
async fn page(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(PAGE_BYTES).read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    let wrong = || std::io::Error::other("these are not metrics");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(wrong)?;
    let is_well = head.split(' ').nth(1) == Some("200");
    match is_well {
        true => Ok(body.to_owned()),
        false => Err(wrong()),
    }
}

/// The counters of a page in Prometheus's text format, by name and labels.
fn counters(page: &str) -> Map<String, Value> {
    // A last line without a line end may be truncated.
    let page = page.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| {
        let (name, value) = line.rsplit_once(' ')?;
        let name = name.strip_prefix(PREFIX)?;
        let whole = value.parse::<u64>().ok().map(Value::from);
        let value = whole.or_else(|| value.parse::<f64>().ok().map(Value::from))?;
        Some((name.to_owned(), value))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_are_kept_of_long_pages() {
        let mut history = History::default();
        let long: Arc<str> = "x".repeat(SAMPLES_BYTES / 4).into();
        for _ in 0..SAMPLES {
            history.keep(Arc::clone(&long));
        }
        assert_eq!((history.samples.len(), history.bytes), (4, SAMPLES_BYTES));
        for _ in 0..2 * SAMPLES {
            history.keep("{}".into());
        }
        assert_eq!(
            (history.samples.len(), history.bytes),
            (SAMPLES, 2 * SAMPLES)
        );
    }

    #[test]
    fn counters_are_read_by_name_and_labels() {
        let page = "# HELP turboflow_a\nturboflow_a 5\nturboflow_b{reason=\"x y\"} 1.5\nother 1\n";
        let expected = json!({ "a": 5, "b{reason=\"x y\"}": 1.5 });
        assert_eq!(Value::Object(counters(page)), expected);
        let cut = "turboflow_a 5\nturboflow_b 1234";
        assert_eq!(Value::Object(counters(cut)), json!({ "a": 5 }));
    }
}
