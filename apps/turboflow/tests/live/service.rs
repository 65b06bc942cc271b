// SPDX-License-Identifier: Apache-2.0
//! `turboflow run`: configured by a file, queried while it runs, reloaded by SIGHUP, and ended by
//! SIGTERM.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;

use turboflow_testing::{PATIENCE, until};

use crate::link::{FAR, Link, Recording};
use crate::support::{Folder, office, rows};

const HUNDRED: [&str; 4] = ["--pps", "10000", "--limit", "100"];
const CONFIG: &str = "interface = [\"vb\"]\nwrite = [\"flows-%Y%m%dT%H%M%S.csv\"]\n\
                      ledger = \"ledger.json\"\n";

pub(crate) fn serve(link: &Link, more: &str) -> Recording {
    assert_eq!(FAR, "vb");
    let folder = Folder::new();
    folder.write("turboflow.toml", format!("{CONFIG}{more}"));
    link.start(folder, &["run", "--config", "turboflow.toml"], &[])
}

/// A page of the program, including the HTTP header.
pub(crate) fn page(link: &Link, path: &str) -> String {
    let ask = format!(
        "exec 3<>/dev/tcp/127.0.0.1/9414; printf 'GET {path} HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3"
    );
    let output = link.inside("bash").args(["-c", &ask]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The samples without labels, by name without their prefix `turboflow_`.
pub(crate) fn metrics(link: &Link) -> BTreeMap<String, u64> {
    let page = page(link, "/metrics");
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    let samples = body
        .lines()
        .filter_map(|line| line.strip_prefix("turboflow_")?.split_once(' '));
    samples
        .filter(|(name, _)| !name.contains('{'))
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

/// Checks conservation in the metrics: every packet is in a record, in a table, or in a counter.
#[track_caller]
pub(crate) fn conserves(metrics: &BTreeMap<String, u64>) {
    let sum = |names: &[&str]| names.iter().map(|name| metrics[*name]).sum::<u64>();
    let received = metrics["packets_received_total"];
    let somewhere = [
        "packets_recorded_total",
        "packets_resident",
        "packets_non_ip_total",
        "packets_malformed_total",
    ];
    assert_eq!(received, sum(&somewhere), "{metrics:#?}");
    let from_kernel = [
        "packets_received_total",
        "source_dropped_total",
        "source_unread",
    ];
    assert_eq!(
        metrics["source_seen_total"],
        sum(&from_kernel),
        "{metrics:#?}"
    );
    assert_eq!(metrics["ledger_imbalances"], 0);
}

#[test]
fn a_service_meters_answers_rotates_its_files_and_ends() {
    let Some(link) = Link::new() else { return };
    for threads in [
        "threads = 1\n",
        "threads = 3\n",
        "readers = 3\n",
        "readers = 2\nthreads = 2\n",
    ] {
        let mut running = serve(&link, threads);
        assert!(link.replay(&office(), &HUNDRED));
        let scraped = loop {
            let scraped = metrics(&link);
            conserves(&scraped);
            if scraped["packets_received_total"] == 100 {
                break scraped;
            }
        };
        assert!(scraped["packets_resident"] > 0, "{scraped:#?}");
        assert!(page(&link, "/healthz").ends_with("\r\n\r\nok\n"));
        assert!(page(&link, "/other").starts_with("HTTP/1.1 404 "));
        running.signal("HUP");
        running.wait_for(".csv is complete");
        let names = running.folder.names();
        let first = names.iter().find(|name| name.ends_with(".csv")).unwrap();
        let complete = rows(&running.folder.read(first)).len() as u64;
        while metrics(&link)["records_written_total"] < complete {}
        assert_eq!(metrics(&link)["records_written_total"], complete);
        assert!(link.replay(&office(), &HUNDRED));
        running.signal("TERM");
        let ended = running.end().balanced(0);
        assert_eq!(ended.count("packets_received"), 200);
        assert_eq!(ended.count("packets_resident"), 0);
        let files = ended.folder.names();
        let files: Vec<_> = files.iter().filter(|name| name.ends_with(".csv")).collect();
        assert_eq!(files.len(), 2, "{files:?}");
        let written = files
            .iter()
            .map(|name| rows(&ended.folder.read(name)).len());
        assert_eq!(
            written.sum::<usize>() as u64,
            ended.count("records_written")
        );
    }
}

#[test]
fn old_files_are_removed_by_age_and_by_size() {
    let Some(link) = Link::new() else { return };
    for keep in ["keep = \"1d\"\n", "keep-size = \"1kB\"\n"] {
        let folder = Folder::new();
        let output = "[[output]]\nto = \"flows-%s.csv\"\nrotate = \"1h\"\n";
        let source = "[source]\ninterfaces = [\"vb\"]\n[service]\nledger = \"ledger.json\"\n";
        folder.write("turboflow.toml", format!("{source}{output}{keep}"));
        for name in ["flows-1000.csv", "flows-1001.csv", "notes-1000.csv"] {
            let path = folder.write(name, [b'x'; 800]);
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
        }
        let running = link.start(folder, &["run", "--config", "turboflow.toml"], &[]);
        // Old files are removed at the start, because the disk may be full.
        let old = running.folder.path().join("flows-1000.csv");
        until("the oldest is gone", || !old.exists());
        running.signal("TERM");
        let ended = running.end();
        let names = ended.folder.names();
        assert!(names.contains(&"notes-1000.csv".to_owned()), "{names:?}");
        assert!(!names.contains(&"flows-1000.csv".to_owned()), "{names:?}");
    }
}

#[test]
fn outputs_change_when_the_configuration_does() {
    let Some(link) = Link::new() else { return };
    // Without its port, the address still names the same collector.
    let _collector = link.open(|| UdpSocket::bind("127.0.0.1:4739").unwrap());
    let config = CONFIG.replace("csv\"]", "csv\", \"ipfix+udp://127.0.0.1\"]");
    let folder = Folder::new();
    folder.write("turboflow.toml", format!("{config}metrics = \"none\"\n"));
    let mut running = link.start(folder, &["run", "--config", "turboflow.toml"], &[]);
    assert!(link.replay(&office(), &HUNDRED));
    let other = config.replace("flows-%Y%m%dT%H%M%S.csv", "other.jsonl");
    running.folder.write(
        "turboflow.toml",
        format!("{other}threads = 2\nmetrics = \"none\"\n"),
    );
    running.signal("HUP");
    running.wait_for("threads: takes effect at the next start");
    running.wait_for("kept: 1, begun: 1, ended: 1");
    running.wait_for(".csv is complete");
    running
        .folder
        .write("turboflow.toml", other.replace("write", "wriet"));
    running.signal("HUP");
    running.wait_for("everything stays as it was");
    assert!(link.replay(&office(), &HUNDRED));
    running.signal("TERM");
    let ended = running.end().balanced(0);
    assert_eq!(ended.count("packets_received"), 200);
    let records = ended.folder.read("other.jsonl").lines().count() as u64;
    assert!(records > 0);
    let files = ended.folder.names();
    let first = files.iter().filter(|name| name.starts_with("flows-"));
    let before: usize = first.map(|name| rows(&ended.folder.read(name)).len()).sum();
    let in_files = before as u64 + records;
    assert_eq!(
        2 * in_files,
        ended.count("records_written"),
        "the collector got every flow"
    );
    assert_eq!(ended.count("records_dropped"), 0);
}

/// Without this refusal, records would be overwritten silently.
#[test]
fn a_complete_file_is_not_overwritten() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    let both = "interface = [\"vb\"]\nwrite = [\"a.csv\", \"b.csv\"]\nledger = \"ledger.json\"\n\
                idle-timeout = \"100ms\"\n";
    folder.write("turboflow.toml", both);
    let mut running = link.start(folder, &["run", "--config", "turboflow.toml"], &[]);
    assert!(link.replay(&office(), &HUNDRED));
    until("its flows are in both files", || {
        let metrics = metrics(&link);
        metrics["packets_received_total"] == 100 && metrics["packets_resident"] == 0
    });
    let one = both.replace(", \"b.csv\"", "");
    running.folder.write("turboflow.toml", &one);
    running.signal("HUP");
    running.wait_for("kept: 1, begun: 0, ended: 1");
    running.folder.write("turboflow.toml", both);
    running.signal("HUP");
    running.wait_for("b.csv was completed when it was removed from the configuration");
    let renamed = both.replace("a.csv\", \"b.csv", "./a.csv");
    running.folder.write("turboflow.toml", renamed);
    running.signal("HUP");
    running.wait_for("./a.csv is already being written under another spelling of its name");
    let other = both.replace("b.csv", "c.csv");
    running.folder.write("turboflow.toml", other);
    running.signal("HUP");
    running.wait_for("kept: 1, begun: 1, ended: 0");
    running.signal("TERM");
    let ended = running.end().balanced(0);
    let written = ["a.csv", "b.csv", "c.csv"].map(|name| rows(&ended.folder.read(name)).len());
    assert!(written[1] > 0, "{written:?}");
    let sum: usize = written.iter().sum();
    assert_eq!(sum as u64, ended.count("records_written"));
}

/// A new rotation interval of files must not restart a collector's session, which would change its
/// observation domain or sequence numbers.
#[test]
fn outputs_follow_their_own_options_alone() {
    let Some(link) = Link::new() else { return };
    let _collector = link.open(|| UdpSocket::bind("127.0.0.1:4739").unwrap());
    let config = CONFIG.replace("csv\"]", "csv\", \"ipfix+udp://127.0.0.1\"]");
    let config = format!("{config}metrics = \"none\"\nobservation-domain = 7\n");
    let folder = Folder::new();
    folder.write("turboflow.toml", &config);
    let mut running = link.start(folder, &["run", "--config", "turboflow.toml"], &[]);
    for (more, said) in [
        ("rotate = \"4m\"\n", "kept: 1, begun: 1, ended: 1"),
        (
            "rotate = \"4m\"\nexport-rate = 1000\n",
            "kept: 1, begun: 1, ended: 1",
        ),
        (
            "rotate = \"4m\"\nexport-rate = 1000\nquiet = true\n",
            "quiet: takes effect at the next start",
        ),
        (
            "rotate = \"4m\"\nexport-rate = 1000\nexport-mtu = 600\n",
            "kept: 1, begun: 1, ended: 1",
        ),
    ] {
        running
            .folder
            .write("turboflow.toml", format!("{config}{more}"));
        running.signal("HUP");
        running.wait_for(said);
    }
    running.signal("TERM");
    running.end().balanced(0);
}

#[test]
fn a_reload_says_which_changes_have_to_wait() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    let source = "[source]\ninterfaces = [\"vb\"]\n";
    let one = "[[output]]\nto = \"one.csv\"\n";
    let rotating = "[[output]]\nto = \"flows-%s.csv\"\nrotate = \"5m\"\n";
    let identity = "identity = true\n";
    let (service, exporter) = (
        "[service]\nledger = \"ledger.json\"\n",
        "exporter = \"tap\"\n",
    );
    let before = format!("{source}{one}{rotating}{identity}{service}{exporter}");
    folder.write("turboflow.toml", before);
    folder.write("key", [7; 32]);
    let mut running = link.start(folder, &["run", "--config", "turboflow.toml"], &[]);
    let after = format!("{source}{one}anonymize = \"key\"\n{rotating}{service}");
    running.folder.write("turboflow.toml", after);
    running.signal("HUP");
    running.wait_for("exporter: takes effect at the next start");
    running.wait_for("one.csv: its options changed, which takes effect at the next start");
    running.wait_for("kept: 1, begun: 1, ended: 1");
    running.signal("TERM");
    running.end().balanced(0);
}

#[test]
fn rights_are_dropped_once_the_interfaces_are_open() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    let open_to_all = Permissions::from_mode(0o777);
    fs::set_permissions(folder.path(), open_to_all).unwrap();
    folder.write(
        "turboflow.toml",
        format!("{CONFIG}user = \"65534:65534\"\n"),
    );
    let running = link.start(folder, &["run", "--config", "turboflow.toml"], &[]);
    let mut threads = 0;
    for thread in fs::read_dir(format!("/proc/{}/task", running.id())).unwrap() {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        let line = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap()
        };
        for name in ["Uid:", "Gid:"] {
            assert!(
                line(name).split_whitespace().all(|id| id == "65534"),
                "{status}"
            );
        }
        assert_eq!(line("Groups:").trim(), "65534");
        for name in ["CapEff:", "CapPrm:"] {
            assert_eq!(line(name).trim(), "0000000000000000", "{status}");
        }
        assert_eq!(line("NoNewPrivs:").trim(), "1", "{status}");
        threads += 1;
    }
    assert!(threads > 1);
    assert!(link.replay(&office(), &HUNDRED));
    running.signal("TERM");
    assert_eq!(running.end().balanced(0).count("packets_received"), 100);
}

/// A definition, certificates and a key that only root may read are read once, because after
/// dropping privileges they cannot be read again.
#[test]
fn files_readable_by_root_alone_do_not_block_other_changes() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let own = folder.write(
        "own.toml",
        "[[feature]]\nname = \"packets\"\nop = \"count\"\n",
    );
    let ca = folder.file("ca.pem");
    let script = format!(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ca \
         -keyout /dev/null -out {ca} 2>/dev/null"
    );
    link.shell(&script);
    let key = folder.write("key", [7; 32]);
    for file in [&own, &ca, &key] {
        fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
    }
    let config = |rotate: &str| {
        format!(
            "interface = [\"vb\"]\nuser = \"65534:65534\"\ndefinition = \"own.toml\"\ntls-ca = \"ca.pem\"\n\
             anonymize = \"key\"\nwrite = [\"flows-%s.csv\", \"ipfix+tls://127.0.0.1:9\"]\nledger = \"ledger.json\"\nrotate = \"{rotate}\"\n"
        )
    };
    folder.write("turboflow.toml", config("5m"));
    let mut running = link.start(folder, &["run", "--config", "turboflow.toml"], &[]);
    running.folder.write("turboflow.toml", config("7m"));
    running.signal("HUP");
    running.wait_for("kept: 1, begun: 1, ended: 1");
    // Switching to another definition and back needs no new read of the first one.
    let features = fs::read(running.folder.file("own.toml")).unwrap();
    running.folder.write("other.toml", features);
    let other = config("7m").replace("own.toml", "other.toml");
    running.folder.write("turboflow.toml", other);
    running.signal("HUP");
    running.wait_for("definition: takes effect at the next start");
    running.folder.write("turboflow.toml", config("9m"));
    running.signal("HUP");
    running.wait_for("kept: 1, begun: 1, ended: 1");
    running.signal("KILL");
    running.killed();
}

/// A pipe whose reader has stopped must not keep other outputs from being completed.
#[test]
fn a_stalled_output_is_abandoned_at_the_end() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    let pipe = folder.file("pipe.csv");
    link.shell(&format!("mkfifo {pipe}"));
    let name = pipe.clone();
    let opens = std::thread::spawn(move || File::open(name).unwrap());
    let config = CONFIG.replace("write = [", "write = [\"pipe.csv\", ");
    folder.write("turboflow.toml", config);
    let running = link.start(folder, &["run", "--config", "turboflow.toml"], &[]);
    let asleep = opens.join().unwrap();
    // More flows than fit in the pipe.
    assert!(link.replay(&office(), &["--pps", "20000"]));
    running.signal("TERM");
    let ended = running.end();
    drop(asleep);
    let said = &ended.balanced(1).said;
    assert!(
        said.contains("cannot write pipe.csv: it took nothing for 4 s"),
        "{said}"
    );
}

/// If a pipe has no reader, the service does not start, or keeps its configuration.
#[test]
fn a_pipe_without_a_reader_is_refused() {
    let Some(link) = Link::new() else { return };
    let mut running = serve(&link, "");
    let pipe = running.folder.file("pipe.csv");
    link.shell(&format!("mkfifo {pipe}"));
    let config = CONFIG.replace("write = [", "write = [\"pipe.csv\", ");
    running.folder.write("turboflow.toml", config);
    running.signal("HUP");
    running.wait_for("this named pipe has no reader");
    running.folder.write("turboflow.toml", CONFIG);
    running.signal("HUP");
    running.signal("TERM");
    running.end().balanced(0);
}

#[test]
fn the_service_manager_is_notified() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    let path = folder.file("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let heard = || {
        let mut bytes = [0; 64];
        let length = loop {
            // A debugger or a stopped terminal may interrupt a call with a timeout.
            match manager.recv(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => break received.unwrap(),
            }
        };
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    folder.write("turboflow.toml", CONFIG);
    let environment = [
        ("NOTIFY_SOCKET", path.as_str()),
        ("WATCHDOG_USEC", "200000"),
    ];
    let running = link.start(folder, &["run", "--config", "turboflow.toml"], &environment);
    assert_eq!(heard(), "READY=1");
    assert_eq!(heard(), "WATCHDOG=1");
    running.signal("TERM");
    while heard() != "STOPPING=1" {}
    running.end().balanced(0);
}

#[test]
fn files_end_with_the_clock_on_a_silent_link() {
    let Some(link) = Link::new() else { return };
    let mut running = serve(&link, "rotate = \"1s\"\nmetrics = \"none\"\n");
    running.wait_for(".csv is complete");
    running.wait_for(".csv is complete");
    running.signal("TERM");
    running.end().balanced(0);
}
