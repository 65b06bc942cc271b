// SPDX-License-Identifier: Apache-2.0
//! Tells from `/proc` whether another process is idle, and which system call it is blocked in.

use std::fs;

/// A system call that can block a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// `openat`, or `ppoll` in a program that must react to signals: opening a named pipe whose
    /// other end is not open.
    Opening,
    /// `read` from that file descriptor, or `ppoll` before such a read.
    Reading(u32),
    /// `clock_nanosleep` or `nanosleep`.
    Sleeping,
    /// `write`.
    Writing,
}

#[cfg(target_arch = "x86_64")]
mod number {
    pub(super) const CLOCK_NANOSLEEP: u64 = 230;
    pub(super) const NANOSLEEP: u64 = 35;
    pub(super) const OPENAT: u64 = 257;
    pub(super) const PPOLL: u64 = 271;
    pub(super) const READ: u64 = 0;
    pub(super) const WRITE: u64 = 1;
}

#[cfg(not(target_arch = "x86_64"))]
mod number {
    pub(super) const CLOCK_NANOSLEEP: u64 = 115;
    pub(super) const NANOSLEEP: u64 = 101;
    pub(super) const OPENAT: u64 = 56;
    pub(super) const PPOLL: u64 = 73;
    pub(super) const READ: u64 = 63;
    pub(super) const WRITE: u64 = 64;
}

/// Whether a thread of the process is currently blocked in that call. For a child of this process,
/// no privileges are needed.
#[must_use]
pub fn is_blocked(process: u32, call: Blocked) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
        return false;
    };
    threads.flatten().any(|thread| {
        // "running", or the number and arguments of the system call that the thread is blocked in.
        let text = fs::read_to_string(thread.path().join("syscall")).unwrap_or_default();
        is_call(&text, call)
    })
}

/// Whether every thread of the process is asleep, as when all work is done. An empty socket does
/// not prove that: its reader may still be processing the last datagram.
#[must_use]
pub fn is_idle(process: u32) -> bool {
    // Threads are read one after another. If none has run in between, all were asleep at the same
    // time.
    let before = sleepers(process);
    before.is_some() && before == sleepers(process)
}

/// The status of each thread, including its context switches; `None` if a thread is not asleep.
fn sleepers(process: u32) -> Option<Vec<String>> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let status = threads.map(|thread| {
        let status = fs::read_to_string(thread.ok()?.path().join("status")).ok()?;
        status.contains("\nState:\tS").then_some(status)
    });
    status.collect()
}

fn is_call(text: &str, call: Blocked) -> bool {
    let mut words = text.split_whitespace();
    let number = words.next().and_then(|word| word.parse::<u64>().ok());
    let first = words.next().and_then(|word| word.strip_prefix("0x"));
    let first = first.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let (wanted, descriptor) = match call {
        Blocked::Opening => ([number::OPENAT, number::PPOLL], None),
        Blocked::Reading(descriptor) => ([number::READ, number::PPOLL], Some(descriptor)),
        Blocked::Sleeping => ([number::CLOCK_NANOSLEEP, number::NANOSLEEP], None),
        Blocked::Writing => ([number::WRITE; 2], None),
    };
    number.is_some_and(|number| wanted.contains(&number))
        // The first argument of `ppoll` is a pointer, not a descriptor.
        && (number == Some(number::PPOLL)
            || descriptor.is_none_or(|wanted| first == Some(u64::from(wanted))))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::until;

    #[test]
    fn a_call_is_known_by_its_number_and_descriptor() {
        let line = format!("{} 0x3 0x7f 0x20 0x0 0x0 0x0 0x7ff 0x7f", number::READ);
        assert!(is_call(&line, Blocked::Reading(3)));
        assert!(!is_call(&line, Blocked::Reading(0)));
        assert!(!is_call(&line, Blocked::Writing));
        assert!(!is_call("running\n", Blocked::Reading(3)));
        assert!(!is_call("", Blocked::Opening));
    }

    #[test]
    fn a_process_without_input_is_blocked_in_read() {
        let mut cat = Command::new("cat");
        let mut cat = cat.stdin(Stdio::piped()).spawn().unwrap();
        until("cat reads", || is_blocked(cat.id(), Blocked::Reading(0)));
        assert!(!is_blocked(cat.id(), Blocked::Writing));
        until("cat sleeps", || is_idle(cat.id()));
        drop(cat.stdin.take());
        assert!(cat.wait().unwrap().success());
        assert!(!is_blocked(cat.id(), Blocked::Reading(0)));
        assert!(!is_idle(cat.id()));
    }

    #[test]
    fn a_process_that_runs_is_not_idle() {
        let mut busy = Command::new("sh");
        busy.args(["-c", "while :; do :; done"]);
        let mut busy = busy.spawn().unwrap();
        let was_idle = (0..100).any(|_| is_idle(busy.id()));
        // Killed before an assertion can fail and leave the loop running.
        busy.kill().unwrap();
        busy.wait().unwrap();
        assert!(!was_idle);
        assert!(!is_idle(busy.id()), "it is gone");
    }
}
