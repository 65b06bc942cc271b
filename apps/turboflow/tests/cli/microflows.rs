// SPDX-License-Identifier: Apache-2.0
//! Microflow records over a network: records of several probes on a link become the flow records of
//! one meter that sees all of the link.

use std::io::{Read, Write};
use std::net::TcpStream;

use turboflow_capture::CaptureFile;
use turboflow_record::Definition;

use crate::collecting::{Collecting, send};
use crate::records::{SECOND_NS, Writer, sorted};
use crate::support::{Folder, office, turboflow};

/// The messages of two probes. The packets of the sample alternate between them, so that nearly
/// every flow has packets at both.
fn two_probes(definition: &Definition) -> [Vec<Vec<u8>>; 2] {
    let mut probes = [1, 2].map(|engine_id| Writer::new(engine_id, definition));
    let mut file = CaptureFile::open(office().as_ref()).unwrap();
    let (mut second, mut seen) = (0, 0);
    while let Some(batch) = file.next_batch(1_024).unwrap() {
        for frame in batch.frames() {
            let now = frame.timestamp_ns / SECOND_NS;
            if now > second && second > 0 {
                for probe in &mut probes {
                    probe.complete(now * SECOND_NS, false);
                }
            }
            second = second.max(now);
            probes[seen % 2].frame(frame);
            seen += 1;
        }
    }
    probes.map(|mut probe| {
        probe.complete(0, true);
        probe.messages
    })
}

fn of_all_packets() -> String {
    let record = [
        "record",
        "-q",
        "-r",
        &office(),
        "-w",
        "-",
        "--format",
        "csv",
    ];
    turboflow(record).exits(0).stdout
}

#[test]
fn two_probes_are_merged_into_the_flows_of_one_that_saw_all() {
    let mut collecting = Collecting::at("udp://127.0.0.1:0,tcp://127.0.0.1:0", &[]);
    let (udp, tcp) = (collecting.address(), collecting.address());
    let [first, second] = two_probes(&Definition::default());
    send(udp, &first);
    let mut stream = TcpStream::connect(tcp).unwrap();
    stream.write_all(&second.concat()).unwrap();
    let ended = collecting.end("INT");
    let ledger = ended.ledger();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_eq!(ledger["balanced"], true, "{ledger:#}");
    assert_eq!(ledger["microflows_dropped"], 0, "{ledger:#}");
    let records = ledger["packets_recorded"].as_u64();
    assert_eq!(
        ledger["engine_counts"]["engine_collector_microflows"].as_u64(),
        records
    );
    let (merged, read) = (ended.folder.read("flows.csv"), of_all_packets());
    let (merged, read) = (sorted(&merged), sorted(&read));
    assert!(read.len() > 700);
    assert_eq!(merged, read);
}

#[test]
fn what_is_missing_between_probe_and_collector_is_lost_by_number() {
    let mut collecting = Collecting::at("udp://127.0.0.1:0", &[]);
    let udp = collecting.address();
    let [mut messages, _] = two_probes(&Definition::default());
    let sequence = |message: &[u8]| u32::from_be_bytes(message[20..24].try_into().unwrap());
    let mut inner = messages.len() / 2..messages.len() - 1;
    let steps = |at: usize| sequence(&messages[at + 1]) - sequence(&messages[at]);
    let at = inner.find(|at| steps(*at) > 0).unwrap();
    let missing = steps(at);
    let records = sequence(messages.last().unwrap()) - missing;
    messages.remove(at);
    // A repeated message counts once.
    messages.insert(at, messages[at - 1].clone());
    send(udp, &messages);
    let ended = collecting.end("INT");
    let ledger = ended.ledger();
    assert_eq!(ended.code, Some(1), "{}", ended.said);
    assert_eq!(ledger["microflows_dropped"], missing, "{ledger:#}");
    assert_eq!(ledger["packets_recorded"], records, "{ledger:#}");
    assert_eq!(
        ledger["engine_counts"]["engine_collector_messages_repeated"],
        1
    );
    assert!(ended.said.contains("sequence numbers"), "{}", ended.said);
}

#[test]
fn records_of_another_definition_are_refused_by_name() {
    let text = "[[feature]]\nname = \"l\"\nop = \"list\"\nk = 4\nof = \"ip_length\"\n";
    let folder = Folder::new();
    let definition = folder.write("d.toml", text);
    // The flow records of other exporters have no such list.
    let listen = [
        "collect",
        "--listen",
        "tcp://127.0.0.1:0",
        "--definition",
        &definition,
    ];
    turboflow(listen)
        .exits(2)
        .says(&["a list of `ip_length`", "--only-microflows"]);
    let alone = ["--definition", &definition, "--only-microflows"];
    let mut collecting = Collecting::at("udp://127.0.0.1:0,tcp://127.0.0.1:0", &alone);
    let (udp, tcp) = (collecting.address(), collecting.address());
    let [messages, _] = two_probes(&Definition::default());
    let mut stream = TcpStream::connect(tcp).unwrap();
    stream.write_all(&messages[0]).unwrap();
    // The collector ends the connection.
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    let netflow9 = [&[0, 9][..], &[0; 18]].concat();
    send(udp, &[messages[0].clone(), netflow9]);
    let ended = collecting.end("INT");
    assert_eq!(ended.code, Some(1), "{}", ended.said);
    for words in [
        "was disconnected: its records are of another definition (layout id ",
        "sent a message that was refused: its records are of another definition (layout id ",
        "this run accepts only microflow records of TurboFlow (--only-microflows)",
    ] {
        assert!(ended.said.contains(words), "{words}: {}", ended.said);
    }
    let counts = &ended.ledger()["engine_counts"];
    assert_eq!(
        counts["engine_collector_microflows_refused"], 2,
        "{counts:#}"
    );
    assert_eq!(counts["engine_collector_flows_refused"], 1, "{counts:#}");
}

/// If a sender is cut off, refused or not believed, records are lost, and the run reports that.
#[test]
fn what_is_cut_refused_or_not_believed_is_a_loss() {
    let [messages, _] = two_probes(&Definition::default());
    let records = messages.iter().find(|message| message.len() > 200).unwrap();
    let mut lie = records.clone();
    // The byte count of the first record.
    lie[40..48].copy_from_slice(&(1_u64 << 55).to_be_bytes());
    for (count, sent, words, name) in [
        (
            1,
            &records[..100],
            "in the middle of a message",
            "messages_cut",
        ),
        (
            66,
            &[][..],
            "was refused: 64 of its connections are open",
            "connections_refused",
        ),
        (
            1,
            &lie[..],
            "records refused for implausibly many packets",
            "records_implausible",
        ),
    ] {
        let mut collecting = Collecting::at("tcp://127.0.0.1:0", &[]);
        let address = collecting.address();
        let mut streams: Vec<TcpStream> = (0..count)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        streams[0].write_all(sent).unwrap();
        if count > 1 {
            collecting.talk.wait_for(words);
        }
        drop(streams);
        let ended = collecting.end("INT");
        assert_eq!(ended.code, Some(1), "{name}: {}", ended.said);
        assert!(ended.said.contains(words), "{name}: {}", ended.said);
        assert!(
            ended.said.contains("records are missing"),
            "{name}: {}",
            ended.said
        );
        let ledger = ended.ledger();
        let counted = &ledger["engine_counts"][format!("engine_collector_{name}")];
        assert!(counted.as_u64() >= Some(1), "{ledger:#}");
        assert_eq!(ledger["balanced"], true, "{ledger:#}");
    }
}
