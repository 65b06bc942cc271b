// SPDX-License-Identifier: Apache-2.0
//! Waiting for other processes and threads. This is the only place where tests read a clock.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit that guards against hanging: far longer than any wait, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Interval between two polls.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until a condition holds.
///
/// # Panics
/// After [`PATIENCE`].
#[track_caller]
#[allow(
    clippy::disallowed_methods,
    reason = "other processes decide when it is so"
)]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        let waited = started.elapsed();
        assert!(waited < PATIENCE, "waited {waited:?} in vain until {what}");
        thread::sleep(PAUSE);
    }
}

/// Does some work, and returns whether it was done within the limit. It is for tests of what
/// happens in a short time, which are meaningless if a busy machine took longer.
#[must_use]
#[allow(clippy::disallowed_methods, reason = "a busy machine holds up a test")]
pub fn is_done_within(limit: Duration, work: impl FnOnce()) -> bool {
    let started = Instant::now();
    work();
    started.elapsed() <= limit
}

/// The lines of a process's output, as they arrive.
#[derive(Debug)]
pub struct Talk {
    lines: Receiver<String>,
    said: String,
}

impl Talk {
    /// Reads a stream to its end on a thread, so that the process never blocks on writing.
    #[must_use]
    pub fn of(stream: impl Read + Send + 'static) -> Self {
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                // The receiver no longer exists after the test has ended.
                let _ = sender.send(line);
            }
        });
        let said = String::new();
        Self { lines, said }
    }

    /// The next line; `None` at the end.
    ///
    /// # Panics
    /// After [`PATIENCE`].
    #[track_caller]
    pub fn line(&mut self) -> Option<String> {
        use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                self.said.push_str(&line);
                self.said.push('\n');
                Some(line)
            }
            Err(Disconnected) => None,
            Err(Timeout) => panic!("said nothing more for {PATIENCE:?}: {}", self.said),
        }
    }

    /// Waits for the next line that contains these words.
    ///
    /// # Panics
    /// At the end, and after [`PATIENCE`].
    #[track_caller]
    pub fn wait_for(&mut self, words: &str) {
        while let Some(line) = self.line() {
            if line.contains(words) {
                return;
            }
        }
        panic!("said nothing of {words:?}: {}", self.said);
    }

    /// Everything that the process has written, once its output has ended.
    ///
    /// # Panics
    /// After [`PATIENCE`] without a line.
    #[track_caller]
    pub fn rest(&mut self) -> &str {
        while self.line().is_some() {}
        &self.said
    }

    /// What has been read so far.
    #[must_use]
    pub fn said(&self) -> &str {
        &self.said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_waited_for_and_kept() {
        let mut talk = Talk::of(&b"one\nreading two\nthree\n"[..]);
        talk.wait_for("reading");
        assert_eq!(talk.said(), "one\nreading two\n");
        assert_eq!(talk.rest(), "one\nreading two\nthree\n");
        assert_eq!(talk.line(), None);
    }

    #[test]
    #[should_panic(expected = "said nothing of \"four\"")]
    fn missing_words_are_reported() {
        Talk::of(&b"one\n"[..]).wait_for("four");
    }
}
