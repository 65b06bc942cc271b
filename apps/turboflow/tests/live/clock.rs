// SPDX-License-Identifier: Apache-2.0
//! The clock is set back by an hour, and forward again. The machine's clock stays as it is: the program
//! has two sources of time that such a step moves, and both are moved for it alone. The kernel's
//! stamps are those that senders give their packets (`SO_TXTIME`, which a veth pair hands on as the time
//! of arrival), its own clock is libfaketime's.

use std::fs;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::UdpSocket;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::net::sockopt::set_txtime;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, TxTimeFlags, sendmsg};
use rustix::time::ClockId;
use turboflow_testing::{Need, is_missing, library, until};

use crate::link::{FAR, Link, NEAR, Recording};
use crate::service::metrics;
use crate::support::Folder;

const HOUR: i64 = 3_600;
const FLOWS: u16 = 50;
/// Each flow has a port of its own; those that the system picks may come twice.
const FIRST_PORT: u16 = 10_000;
/// Far longer than a busy machine takes between two phases of the test: a flow is idle because the
/// test sets the clock forward, not because the test is slow.
const TIMEOUTS: [&str; 4] = ["--idle-timeout", "10m", "--active-timeout", "none"];
/// The idle timeout, a cell of the clock, and the lag of a live source.
const UNTIL_IDLE: i64 = 600 + 2;
const IDLE_REASON: &str = "1";
const FORCED_REASON: &str = "4";
/// Where the program's clock is looked up, each time it is.
const OFFSET: &str = "offset";

/// Where the library lies; `None` where the test is skipped for want of it.
fn faketime() -> Option<String> {
    let found = library("faketime/libfaketimeMT.so.1");
    if is_missing(&[Need::Library("libfaketime", found.is_some())]) {
        return None;
    }
    found.map(|path| path.display().to_string())
}

/// The link, with addresses between which UDP is sent.
fn addressed(link: Link) -> Link {
    link.ip(&["address", "add", "192.0.2.1/24", "dev", NEAR]);
    let neighbour = "neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 nud permanent dev va";
    link.ip(&neighbour.split(' ').collect::<Vec<_>>());
    link
}

/// The time by a clock that is so many seconds ahead of this machine's.
#[allow(clippy::disallowed_methods, reason = "the test is about time")]
fn now(ahead_s: i64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Duration::from_nanos((now.as_nanos() as i64 + ahead_s * 1_000_000_000) as u64)
}

/// Sends a packet of each flow, stamped with a time.
fn send_at(link: &Link, at: Duration) {
    let received = || metrics(link)["packets_received_total"];
    let before = received();
    link.open(move || {
        for port in FIRST_PORT..FIRST_PORT + FLOWS {
            let socket = UdpSocket::bind(("192.0.2.1", port)).unwrap();
            socket.connect("192.0.2.2:9").unwrap();
            set_txtime(&socket, ClockId::Realtime, TxTimeFlags::empty()).unwrap();
            let stamp = SendAncillaryMessage::TxTime(at.as_nanos() as u64);
            let mut space = [MaybeUninit::uninit(); 64];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(stamp));
            let bytes = [IoSlice::new(b"turboflow")];
            sendmsg(&socket, &bytes, &mut control, SendFlags::empty()).unwrap();
        }
    });
    // Before a clock is set again.
    until("they are metered", || {
        received() == before + u64::from(FLOWS)
    });
}

/// Sends a packet of each flow, stamped by a clock that is so many seconds ahead. Gives that time.
fn send(link: &Link, ahead_s: i64) -> Duration {
    let at = now(ahead_s);
    send_at(link, at);
    at
}

/// Sets the program's clock, as libfaketime reads it: seconds ahead of this machine's clock, or a
/// time at which it stands.
fn set_clock(folder: &Folder, to: &str) {
    let next = folder.write("next", format!("{to}\n"));
    fs::rename(next, folder.path().join(OFFSET)).unwrap();
}

fn set_ahead(folder: &Folder, seconds: i64) {
    set_clock(folder, &format!("{seconds:+}"));
}

/// The program, with a clock of its own, and the header of what it writes.
fn start(link: &Link, library: &str, clock: &str, options: &[&str]) -> (Recording, String) {
    let folder = Folder::new();
    set_clock(&folder, clock);
    let preload = format!("LD_PRELOAD={library}");
    let file = format!("FAKETIME_TIMESTAMP_FILE={}", folder.file(OFFSET));
    let others = "TZ=UTC FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_DISABLE_SHM=1";
    let by = ["env", &preload, &file]
        .into_iter()
        .chain(others.split(' '));
    let mut args = vec!["record", "--ledger", "ledger.json", "-i", FAR, "-w", "-"];
    args.extend(["--format", "csv", "--metrics", "127.0.0.1:9414"]);
    args.extend(options);
    let mut running = link.start_by(&by.collect::<Vec<_>>(), folder, &args, &[]);
    let header = running.stdout.line().unwrap();
    (running, header)
}

/// The flows of a phase have come out, for that reason and from that time, or from so much later.
#[track_caller]
fn ended(running: &mut Recording, header: &str, reason: &str, at: Duration, late: Duration) {
    let column = |name: &str| header.split(',').position(|column| column == name).unwrap();
    for _ in 0..FLOWS {
        let line = running.stdout.line().unwrap();
        let fields: Vec<_> = line.split(',').collect();
        assert_eq!(fields[column("end_reason")], reason, "{line}");
        let start = Duration::from_nanos(fields[column("first_ns")].parse().unwrap());
        assert!(at <= start && start <= at + late, "{at:?}: {line}");
    }
}

/// `noticed_by_packets`: they come at once; otherwise silence shows the step.
fn steps(link: &Link, library: &str, readers: &str, noticed_by_packets: bool) {
    let options = ["--readers", readers];
    let options = [&options[..], &TIMEOUTS].concat();
    let (mut running, header) = start(link, library, "+0", &options);
    let is_over = |running: &mut Recording, reason, at| {
        ended(running, &header, reason, at, Duration::ZERO);
    };
    let first = send(link, 0);
    set_ahead(&running.folder, -HOUR);
    let second = if noticed_by_packets {
        let second = send(link, -HOUR);
        is_over(&mut running, FORCED_REASON, first);
        second
    } else {
        is_over(&mut running, FORCED_REASON, first);
        send(link, -HOUR)
    };
    // Time goes on from there.
    let later = UNTIL_IDLE - HOUR;
    set_ahead(&running.folder, later);
    is_over(&mut running, IDLE_REASON, second);
    let third = send(link, later);
    set_ahead(&running.folder, 0);
    let fourth = send(link, 0);
    is_over(&mut running, IDLE_REASON, third);
    set_ahead(&running.folder, UNTIL_IDLE);
    is_over(&mut running, IDLE_REASON, fourth);
    let ended = running.interrupt().balanced(0);
    assert_eq!(ended.count("packets_recorded"), 4 * u64::from(FLOWS));
    assert_eq!(ended.count("packets_received"), 4 * u64::from(FLOWS));
    assert_eq!(ended.count("clock_steps"), 1);
}

#[test]
fn a_clock_that_is_set_back_an_hour_ends_what_is_open_and_metering_goes_on() {
    let (Some(library), Some(link)) = (faketime(), Link::new()) else {
        return;
    };
    let link = addressed(link);
    for (readers, noticed_by_packets) in [("1", true), ("1", false), ("2", true)] {
        steps(&link, &library, readers, noticed_by_packets);
    }
}

/// The engine in the kernel stamps packets by the kernel's own clock, and by how far this program's wall clock is from it.
fn steps_of_the_engine(link: &Link, library: &str, table: &str) {
    let options = ["--engine", "xdp", "--table", table];
    let options = [&options[..], &TIMEOUTS].concat();
    let (mut running, header) = start(link, library, "+0", &options);
    // What is stamped when it comes is stamped later than it is sent, if not by as much as here.
    let late = Duration::from_secs(60);
    let is_over = |running: &mut Recording, reason, at| {
        ended(running, &header, reason, at, late);
    };
    let first = send(link, 0);
    set_ahead(&running.folder, -HOUR);
    is_over(&mut running, FORCED_REASON, first);
    let second = send(link, -HOUR);
    let later = UNTIL_IDLE - HOUR;
    set_ahead(&running.folder, later);
    is_over(&mut running, IDLE_REASON, second);
    let third = send(link, later);
    set_ahead(&running.folder, 0);
    is_over(&mut running, IDLE_REASON, third);
    let fourth = send(link, 0);
    set_ahead(&running.folder, UNTIL_IDLE);
    is_over(&mut running, IDLE_REASON, fourth);
    let ended = running.interrupt().balanced(0);
    assert_eq!(ended.count("packets_recorded"), 4 * u64::from(FLOWS));
    assert_eq!(ended.count("clock_steps"), 1);
}

#[test]
fn the_engine_in_the_kernel_follows_a_clock_that_is_set() {
    let (Some(library), Some(link)) = (faketime(), Link::for_xdp()) else {
        return;
    };
    let link = addressed(link);
    for table in ["per-cpu", "row-lock"] {
        steps_of_the_engine(&link, &library, table);
    }
}

/// A clock that stands still at a full second. Idle flows leave in the first cell of the clock that
/// begins more than the idle timeout after their last packet, and not before.
#[test]
fn idle_flows_leave_when_the_clock_says_so() {
    let (Some(library), Some(link)) = (faketime(), Link::new()) else {
        return;
    };
    let link = addressed(link);
    for readers in ["1", "3"] {
        let noon = 1_767_268_800;
        let at = |second: u64| format!("2026-01-01 12:00:{second:02}");
        let options = ["--readers", readers, "--idle-timeout", "3s"];
        let (mut running, header) = start(&link, &library, &at(10), &options);
        let sent = Duration::from_secs(noon + 10);
        send_at(&link, sent);
        // The lag of a live source is a tenth of a second: at :14 it is not yet the cell of :14.
        for second in 11..=14 {
            set_clock(&running.folder, &at(second));
            // Questions are answered between two looks at the clock.
            for _ in 0..3 {
                assert_eq!(metrics(&link)["packets_resident"], u64::from(FLOWS));
            }
        }
        set_clock(&running.folder, &at(15));
        ended(&mut running, &header, IDLE_REASON, sent, Duration::ZERO);
        let ended = running.interrupt().balanced(0);
        assert_eq!(ended.count("packets_recorded"), u64::from(FLOWS));
    }
}
