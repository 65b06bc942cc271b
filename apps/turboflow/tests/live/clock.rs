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

use crate::link::{FAR, Link, NEAR, Recording};
use crate::support::{Folder, wait};

const HOUR: Duration = Duration::from_secs(3_600);
const FLOWS: u16 = 50;
/// Each flow has a port of its own; those that the system picks may come twice.
const FIRST_PORT: u16 = 10_000;
/// Longer than a busy machine takes between two phases of the test.
const IDLE_TIMEOUT: &str = "5s";
const IDLE_REASON: &str = "1";
const FORCED_REASON: &str = "4";
/// What the kernel of a busy machine may take to hand packets on, far below the idle timeout.
const DELIVERY_MS: u64 = 300;
/// Where the program's clock is looked up, each time it is.
const OFFSET: &str = "offset";

/// Where the library lies; `None`, loudly, where it is not there.
fn library() -> Option<String> {
    let folders = fs::read_dir("/usr/lib").unwrap();
    let mut paths = folders.map(|entry| entry.unwrap().path().join("faketime/libfaketimeMT.so.1"));
    let found = paths.find(|path| path.exists());
    if found.is_none() {
        let in_ci = std::env::var_os("TURBOFLOW_CI").is_some();
        let how = "scripts/install-test-tools.sh installs it";
        assert!(!in_ci, "libfaketime is not here; {how}");
        eprintln!(
            "############ SKIPPED: no libfaketime to set clocks back with; {how} ############"
        );
    }
    found.map(|path| path.display().to_string())
}

/// A link over which UDP is sent, to nobody.
fn link() -> Option<Link> {
    let link = Link::new()?;
    link.ip(&["address", "add", "192.0.2.1/24", "dev", NEAR]);
    let neighbour = "neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 nud permanent dev va";
    link.ip(&neighbour.split(' ').collect::<Vec<_>>());
    Some(link)
}

/// Sends a packet of each flow, stamped as by a clock that is so far behind. Gives that time.
#[allow(clippy::disallowed_methods, reason = "the test is about time")]
fn send(link: &Link, behind: Duration) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - behind;
    link.open(move || {
        for port in FIRST_PORT..FIRST_PORT + FLOWS {
            let socket = UdpSocket::bind(("192.0.2.1", port)).unwrap();
            socket.connect("192.0.2.2:9").unwrap();
            set_txtime(&socket, ClockId::Realtime, TxTimeFlags::empty()).unwrap();
            let stamp = SendAncillaryMessage::TxTime(now.as_nanos() as u64);
            let mut space = [MaybeUninit::uninit(); 64];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(stamp));
            let bytes = [IoSlice::new(b"turboflow")];
            sendmsg(&socket, &bytes, &mut control, SendFlags::empty()).unwrap();
        }
    });
    // What is sent is in the ring a moment later, before anybody's clock is touched again.
    wait(DELIVERY_MS);
    now
}

/// Sets the program's clock.
fn set_back(folder: &Folder, by: Duration) {
    let next = folder.write("next", format!("-{}\n", by.as_secs()));
    fs::rename(next, folder.path().join(OFFSET)).unwrap();
}

/// The program, with a clock of its own, and the header of what it writes.
fn start(link: &Link, library: &str, options: &[&str]) -> (Recording, String) {
    let folder = Folder::new();
    set_back(&folder, Duration::ZERO);
    let preload = format!("LD_PRELOAD={library}");
    let file = format!("FAKETIME_TIMESTAMP_FILE={}", folder.file(OFFSET));
    let others = "FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_DISABLE_SHM=1";
    let by = ["env", &preload, &file]
        .into_iter()
        .chain(others.split(' '));
    let mut args = vec!["record", "--ledger", "ledger.json", "-i", FAR, "-w", "-"];
    args.extend(["--format", "csv", "--idle-timeout", IDLE_TIMEOUT]);
    args.extend(options);
    let running = link.start_by(&by.collect::<Vec<_>>(), folder, &args, &[]);
    let header = running.stdout.recv().unwrap();
    (running, header)
}

/// The flows of a phase have come out, for that reason and from that time, or from so much later.
#[track_caller]
fn ended(running: &Recording, header: &str, reason: &str, at: Duration, late: Duration) {
    let column = |name: &str| header.split(',').position(|column| column == name).unwrap();
    for _ in 0..FLOWS {
        let patience = Duration::from_secs(30);
        let line = running.stdout.recv_timeout(patience).unwrap();
        let fields: Vec<_> = line.split(',').collect();
        assert_eq!(fields[column("end_reason")], reason, "{line}");
        let start = Duration::from_nanos(fields[column("first_ns")].parse().unwrap());
        assert!(at <= start && start <= at + late, "{at:?}: {line}");
    }
}

/// `noticed_by_packets`: they come at once; otherwise silence shows the step.
fn steps(link: &Link, library: &str, readers: &str, noticed_by_packets: bool) {
    let (running, header) = start(link, library, &["--readers", readers]);
    let is_over = |reason, at| ended(&running, &header, reason, at, Duration::ZERO);
    let first = send(link, Duration::ZERO);
    set_back(&running.folder, HOUR);
    let second = if noticed_by_packets {
        let second = send(link, HOUR);
        is_over(FORCED_REASON, first);
        second
    } else {
        is_over(FORCED_REASON, first);
        send(link, HOUR)
    };
    // Time goes on from there.
    is_over(IDLE_REASON, second);
    let third = send(link, HOUR);
    set_back(&running.folder, Duration::ZERO);
    let fourth = send(link, Duration::ZERO);
    is_over(IDLE_REASON, third);
    is_over(IDLE_REASON, fourth);
    let ended = running.interrupt().balanced(0);
    assert_eq!(ended.count("packets_recorded"), 4 * u64::from(FLOWS));
    assert_eq!(ended.count("packets_received"), 4 * u64::from(FLOWS));
    assert_eq!(ended.count("clock_steps"), 1);
}

#[test]
fn a_clock_that_is_set_back_an_hour_ends_what_is_open_and_metering_goes_on() {
    let (Some(library), Some(link)) = (library(), link()) else {
        return;
    };
    for (readers, noticed_by_packets) in [("1", true), ("1", false), ("2", true)] {
        steps(&link, &library, readers, noticed_by_packets);
    }
}

/// The engine in the kernel stamps packets by the kernel's own clock, and by how far this program's wall clock is from it.
#[cfg(feature = "kernel")]
fn steps_of_the_engine(link: &Link, library: &str, table: &str) {
    let (running, header) = start(link, library, &["--engine", "xdp", "--table", table]);
    // What is stamped when it comes is stamped later than it is sent, if not by as much as here.
    let is_over = |reason, at| ended(&running, &header, reason, at, HOUR / 60);
    let first = send(link, Duration::ZERO);
    set_back(&running.folder, HOUR);
    is_over(FORCED_REASON, first);
    let second = send(link, HOUR);
    is_over(IDLE_REASON, second);
    let third = send(link, HOUR);
    set_back(&running.folder, Duration::ZERO);
    is_over(IDLE_REASON, third);
    let fourth = send(link, Duration::ZERO);
    is_over(IDLE_REASON, fourth);
    let ended = running.interrupt().balanced(0);
    assert_eq!(ended.count("packets_recorded"), 4 * u64::from(FLOWS));
    assert_eq!(ended.count("clock_steps"), 1);
}

#[cfg(feature = "kernel")]
#[test]
fn the_engine_in_the_kernel_follows_a_clock_that_is_set() {
    let (Some(library), Some(link)) = (library(), link()) else {
        return;
    };
    for table in ["per-cpu", "row-lock"] {
        steps_of_the_engine(&link, &library, table);
    }
}
