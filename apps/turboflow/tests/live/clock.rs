// SPDX-License-Identifier: Apache-2.0
//! The clock is set back by an hour, and forward again, but not that of the machine. The program
//! has two sources of time that such a step affects, and both are changed for it alone. The sender
//! sets the kernel's timestamps (`SO_TXTIME`, which a veth pair passes on as arrival time), and
//! libfaketime sets the program's own clock.

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
/// Each flow has a fixed port, because ports chosen by the system may repeat.
const FIRST_PORT: u16 = 10_000;
/// Far longer than a busy machine needs between two phases of the test. So flows become idle
/// because the test advances the clock, not because the test is slow.
const TIMEOUTS: [&str; 4] = ["--idle-timeout", "10m", "--active-timeout", "none"];
/// The idle timeout, plus a cell of the clock and the lag of a live source, in seconds.
const UNTIL_IDLE: i64 = 600 + 2;
const IDLE_REASON: &str = "1";
const FORCED_REASON: &str = "4";
/// The file with the program's clock, which libfaketime reads on every call.
const OFFSET: &str = "offset";

/// Path of the library; `None` if the test is skipped without it.
fn faketime() -> Option<String> {
    let found = library("faketime/libfaketimeMT.so.1");
    if is_missing(&[Need::Library("libfaketime", found.is_some())]) {
        return None;
    }
    found.map(|path| path.display().to_string())
}

/// Adds addresses to the link, for UDP.
fn addressed(link: Link) -> Link {
    link.ip(&["address", "add", "192.0.2.1/24", "dev", NEAR]);
    let neighbour = "neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 nud permanent dev va";
    link.ip(&neighbour.split(' ').collect::<Vec<_>>());
    link
}

/// The time of a clock that is this many seconds ahead of the machine's.
#[allow(clippy::disallowed_methods, reason = "the test is about time")]
fn now(ahead_s: i64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Duration::from_nanos((now.as_nanos() as i64 + ahead_s * 1_000_000_000) as u64)
}

/// Sends a packet of each flow with this timestamp.
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
    // The packets have to be metered before a clock is set again.
    until("they are metered", || {
        received() == before + u64::from(FLOWS)
    });
}

/// Sends a packet of each flow, stamped by a clock that is this many seconds ahead. Returns the
/// timestamp.
fn send(link: &Link, ahead_s: i64) -> Duration {
    let at = now(ahead_s);
    send_at(link, at);
    at
}

/// Sets the program's clock, in libfaketime's format: seconds ahead of this machine's clock, or a
/// fixed time.
fn set_clock(folder: &Folder, to: &str) {
    let next = folder.write("next", format!("{to}\n"));
    fs::rename(next, folder.path().join(OFFSET)).unwrap();
}

fn set_ahead(folder: &Folder, seconds: i64) {
    set_clock(folder, &format!("{seconds:+}"));
}

/// Starts the program with a clock of its own. Returns it with the header of its output.
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

/// Checks that the flows of a phase were exported for this reason, and that they start between `at`
/// and `late` after it.
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

/// `noticed_by_packets`: whether packets reveal the step. Otherwise the clock does, during silence.
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
fn a_clock_set_back_by_an_hour_ends_open_flows_and_metering_goes_on() {
    let (Some(library), Some(link)) = (faketime(), Link::new()) else {
        return;
    };
    let link = addressed(link);
    for (readers, noticed_by_packets) in [("1", true), ("1", false), ("2", true)] {
        steps(&link, &library, readers, noticed_by_packets);
    }
}

/// The XDP engine stamps packets with the kernel's monotonic clock plus its offset to the program's
/// wall clock.
fn steps_of_the_engine(link: &Link, library: &str, table: &str) {
    let options = ["--engine", "xdp", "--table", table];
    let options = [&options[..], &TIMEOUTS].concat();
    let (mut running, header) = start(link, library, "+0", &options);
    // Packets are stamped on arrival, later than they were sent.
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
fn the_xdp_engine_follows_a_clock_that_is_set() {
    let (Some(library), Some(link)) = (faketime(), Link::for_xdp()) else {
        return;
    };
    let link = addressed(link);
    for table in ["per-cpu", "row-lock"] {
        steps_of_the_engine(&link, &library, table);
    }
}

/// A clock that stands still at a full second. Idle flows expire in the first cell that begins more
/// than the idle timeout after their last packet, and not before.
#[test]
fn idle_flows_expire_by_the_clock() {
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
        // The lag of a live source is a tenth of a second, so :14 is not yet in the cell of :14.
        for second in 11..=14 {
            set_clock(&running.folder, &at(second));
            // Requests are answered between two reads of the clock.
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
