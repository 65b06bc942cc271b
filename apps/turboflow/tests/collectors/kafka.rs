// SPDX-License-Identifier: Apache-2.0
//! A real Kafka broker, read by its own consumer: every record arrives once, or is counted as lost.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use turboflow_testing::{Need, free_port, is_missing, until};

use crate::support::{Folder, command, finish, office, project, signal, turboflow};

const BUILT: Need<'static> = Need::Engine("kafka", cfg!(feature = "kafka"));

/// The folder of the archives that `scripts/install-test-tools.sh` downloads.
fn archives() -> String {
    project("target/tools/kafka")
}

fn java(main: &str) -> Command {
    let mut java = Command::new("java");
    java.args(["-Xmx512m", "-cp", &format!("{}/*", archives()), main]);
    java.stdin(Stdio::null());
    java
}

/// A single broker, which is its own controller, with topics of four partitions.
pub(crate) struct Broker {
    folder: Folder,
    port: u16,
    child: Child,
}

impl Broker {
    /// `None` if something that it needs is missing.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with("", "", &[])
    }

    /// Starts it with further listeners (each begins with a comma), settings, and arguments for the
    /// tool that formats the broker's folder.
    pub(crate) fn start_with(listeners: &str, settings: &str, prepared: &[&str]) -> Option<Self> {
        let archive = format!("{}/kafka_2.13-4.1.0.jar", archives());
        if is_missing(&[BUILT, Need::Tool("java"), Need::Tool(&archive)]) {
            return None;
        }
        let folder = Folder::new();
        let (port, controller) = (free_port(), free_port());
        let more = settings;
        let settings = format!(
            "process.roles=broker,controller\nnode.id=1\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{listeners}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{port}{listeners}\n\
             controller.listener.names=CONTROLLER\nlog.dirs={}\nnum.partitions=4\n\
             group.initial.rebalance.delay.ms=0\noffsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n\
             transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n{more}\n",
            folder.file("log")
        );
        let settings = folder.write("server.properties", settings);
        let mut format = java("kafka.tools.StorageTool");
        format.args(["format", "-t", "AAAAAAAAQACAAAAAAAAAAQ", "-c", &settings]);
        format.args(prepared);
        finish(&mut format).exits(0);
        let child = Self::run(&folder, port);
        Some(Self {
            folder,
            port,
            child,
        })
    }

    fn run(folder: &Folder, port: u16) -> Child {
        let talk = fs::File::create(folder.path().join("talk")).unwrap();
        let mut server = java("kafka.Kafka");
        server.arg(folder.file("server.properties"));
        server.stdout(talk.try_clone().unwrap()).stderr(talk);
        let child = server.spawn().unwrap();
        until("the broker listens", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        child
    }

    /// Kills it, like a crash, and restarts it with the data on its disk.
    pub(crate) fn crash_and_restart(&mut self) {
        signal(&self.child, "KILL");
        self.child.wait().unwrap();
        self.child = Self::run(&self.folder, self.port);
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn target(&self, topic: &str) -> String {
        format!("kafka://{}/{topic}", self.address())
    }

    /// The lines of the first `messages` messages of a topic. It must have that many.
    fn consume(&self, topic: &str, messages: usize) -> Vec<String> {
        let mut consumer = java("org.apache.kafka.tools.consumer.ConsoleConsumer");
        consumer.args(["--bootstrap-server", &format!("127.0.0.1:{}", self.port)]);
        consumer.args(["--topic", topic, "--from-beginning"]);
        consumer.args(["--max-messages", &messages.to_string()]);
        let read = finish(consumer.args(["--timeout-ms", "30000"]));
        let said = format!("Processed a total of {messages} messages");
        let read = read.says(&[&said]);
        // The consumer and the record both end with a newline.
        let lines = read.stdout.lines().filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    }

    /// The number of messages in each partition.
    pub(crate) fn ends(&self, topic: &str) -> Vec<u64> {
        let mut offsets = java("org.apache.kafka.tools.GetOffsetShell");
        offsets.args(["--bootstrap-server", &format!("127.0.0.1:{}", self.port)]);
        let read = finish(offsets.args(["--topic", topic])).exits(0);
        let end = |line: &str| line.rsplit(':').next().unwrap().parse().unwrap();
        read.stdout.lines().map(end).collect()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_unstable();
    lines
}

fn lines_of(folder: &Folder, name: &str) -> Vec<String> {
    folder.read(name).lines().map(str::to_owned).collect()
}

fn sum(lines: &[String], name: &str) -> u64 {
    let number = |line: &String| {
        let record: Value = serde_json::from_str(line).unwrap();
        record[name].as_u64().unwrap()
    };
    lines.iter().map(number).sum()
}

/// Two exporters send to one topic, with one record per message and with many. Another topic has
/// protobuf.
#[test]
fn records_arrive_once_and_equal_the_file() {
    let Some(broker) = Broker::start() else {
        return;
    };
    let (folder, office) = (Folder::new(), office());
    let mut meant = Vec::new();
    for (exporter, options) in [("tap-1", ""), ("tap-2", "&compression=zstd")] {
        let name = format!("{exporter}.jsonl");
        let topic = broker.target("flows") + "?format=json" + options;
        let args = ["record", "-q", "-r", &office, "--exporter", exporter];
        let outputs = ["-w", &topic, "-w", &folder.file(&name), "--identity"];
        turboflow(args.iter().chain(&outputs)).exits(0);
        meant.extend(lines_of(&folder, &name));
    }
    let read = broker.consume("flows", meant.len());
    let ends = broker.ends("flows");
    assert_eq!(ends.iter().sum::<u64>(), 2 * 742);
    assert!(
        ends.len() == 4 && ends.iter().all(|end| *end > 0),
        "{ends:?}"
    );
    assert_eq!(sum(&read, "packets"), sum(&meant, "packets"));
    assert_eq!(sum(&read, "bytes"), sum(&meant, "bytes"));
    assert_eq!(sorted(read), sorted(meant));

    let batched = broker.target("batched") + "?records=100";
    let ledger = folder.file("ledger.json");
    turboflow([
        "record", "-q", "-r", &office, "-w", &batched, "--ledger", &ledger,
    ])
    .exits(0);
    let ledger: Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
    assert_eq!(ledger["outputs"][0]["records"], 742);
    assert_eq!(ledger["outputs"][0]["records_dropped"], 0);
    // 48 lanes, each with fewer than 100 records and therefore one message.
    assert!(broker.ends("batched").iter().sum::<u64>() <= 48);
}

/// The broker is killed while records arrive, and is back before they end.
#[test]
fn a_broker_that_crashes_loses_nothing() {
    let Some(mut broker) = Broker::start() else {
        return;
    };
    let (folder, capture) = (Folder::new(), fs::read(office()).unwrap());
    let topic = broker.target("crash") + "?format=json";
    let file = folder.file("a.jsonl");
    let mut record = command(["record", "-q", "-r", "-", "-w", &topic, "-w", &file]);
    record.args(["--identity", "--idle-timeout", "500ms", "--linger", "0"]);
    record.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = record.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (first, second) = capture.split_at(capture.len() / 2);
    stdin.write_all(first).unwrap();
    broker.consume("crash", 1);
    broker.crash_and_restart();
    stdin.write_all(second).unwrap();
    drop(stdin);
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    let meant = lines_of(&folder, "a.jsonl");
    assert!(meant.len() > 742);
    assert_eq!(broker.ends("crash").iter().sum::<u64>(), meant.len() as u64);
    assert_eq!(sorted(broker.consume("crash", meant.len())), sorted(meant));
}

#[test]
fn without_a_broker_metering_ends_and_every_record_is_counted() {
    if is_missing(&[BUILT]) {
        return;
    }
    let (folder, office) = (Folder::new(), office());
    let (file, ledger) = (folder.file("a.csv"), folder.file("ledger.json"));
    let topic = format!("kafka://127.0.0.1:{}/flows", free_port());
    let args = ["record", "-q", "-r", &office, "-w", &topic];
    turboflow(args.iter().chain(&["-w", &file, "--ledger", &ledger]))
        .exits(1)
        .says(&[
            &topic,
            "742 records count as lost",
            "tried again until the run ends",
        ]);
    assert_eq!(folder.read("a.csv").lines().count(), 743);
    let ledger: Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
    assert_eq!(ledger["outputs"][0]["records_dropped"], 742);
    assert_eq!(ledger["outputs"][0]["records"], 0);
    assert_eq!(ledger["balanced"], true);
}
