// SPDX-License-Identifier: Apache-2.0
//! Generated and compiled files are up to date.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use turboflow_engine_p4::{P4Record, SOURCES, Unsupported};
use turboflow_merge::Layout;
use turboflow_record::{Definition, Input};

/// A path in this crate.
fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// `compiled/MANIFEST.toml`.
#[derive(Deserialize)]
struct Manifest {
    artefact: Vec<Artefact>,
}

#[derive(Deserialize)]
struct Artefact {
    artefact: String,
    sha256: String,
    sources: Vec<SourceFile>,
}

#[derive(Deserialize)]
struct SourceFile {
    path: String,
    sha256: String,
}

fn manifest() -> Manifest {
    let text = std::fs::read_to_string(here("compiled/MANIFEST.toml")).unwrap();
    toml::from_str(&text).unwrap()
}

fn sha256(path: &Path) -> String {
    sha256_of(&std::fs::read(path).unwrap_or_default())
}

fn sha256_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        })
}

/// The record definitions for which there are compiled programs, and their artefacts.
fn definitions() -> [(&'static str, Definition, &'static [&'static str]); 4] {
    let everywhere = &[
        "pna/default.spec",
        "v1model/default.json",
        "v1model/default-inline.json",
        "v1model/default-batch.json",
    ];
    [
        ("default", Definition::default(), everywhere),
        (
            "paper_four",
            written("paper_four"),
            &[
                "pna/paper_four.spec",
                "v1model/paper_four.json",
                "v1model/paper_four-inline.json",
            ],
        ),
        (
            "paper_eight",
            written("paper_eight"),
            &["v1model/paper_eight.json"],
        ),
        ("queue", written("queue"), &["v1model/queue.json"]),
    ]
}

/// A definition that comes with the engine.
fn written(name: &str) -> Definition {
    let path = here(&format!("definitions/{name}.toml"));
    Definition::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn all_sources_come_with_the_engine() {
    let mut found = Vec::new();
    for folder in ["pna", "shared", "tna", "v1model"] {
        for entry in std::fs::read_dir(here("p4").join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".p4") {
                found.push(format!("{folder}/{name}"));
            }
        }
    }
    found.sort();
    let listed: Vec<_> = SOURCES.iter().map(|(path, _)| *path).collect();
    assert_eq!(listed, found);
}

#[test]
fn record_definitions_are_as_generated() {
    for (name, definition, _) in definitions() {
        let layout = Layout::compile(&definition, false).unwrap();
        let record = P4Record::new(&definition, &layout);
        let record = record.or_else(|_| P4Record::behind_queue(&definition, &layout));
        let expected = record.unwrap().source(name);
        let path = here(&format!("p4/shared/records/{name}/record.p4"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &expected).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        let update = "UPDATE=1 cargo test -p turboflow-engine-p4 writes it anew";
        assert_eq!(found, expected, "{}: {update}", path.display());
    }
}

#[test]
fn programs_are_compiled_from_these_sources() {
    let manifest = manifest();
    for Artefact {
        artefact,
        sha256: expected,
        sources,
    } in &manifest.artefact
    {
        assert!(sources.len() > 5, "{artefact}: {} sources", sources.len());
        let compile = format!("compile it anew: make p4 ARGS={artefact}");
        for source in sources {
            let found = sha256(&here(&source.path));
            let path = &source.path;
            assert_eq!(
                found, source.sha256,
                "{artefact}: {path} has changed; {compile}"
            );
        }
        let found = sha256(&here("compiled").join(artefact));
        assert_eq!(
            found, *expected,
            "{artefact} is not what was compiled; {compile}"
        );
    }
    for artefact in definitions()
        .iter()
        .flat_map(|(_, _, artefacts)| *artefacts)
    {
        let mut known = manifest.artefact.iter();
        let is_known = known.any(|known| known.artefact == *artefact);
        assert!(is_known, "there is no {artefact}");
    }
}

/// A program in the report on the Tofino.
#[derive(Deserialize)]
struct OnChip {
    record: String,
    target: String,
    options: Vec<String>,
    sources_sha256: String,
}

#[derive(Deserialize)]
struct ChipReport {
    program: Vec<OnChip>,
}

/// The SHA-256 of a line `PATH SHA256` for each source of a program for the Tofino, sorted.
fn sources_on_chip(record: &str) -> String {
    let mut lines = vec![];
    for folder in ["tna", "shared"] {
        for entry in std::fs::read_dir(here("p4").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ends| ends == "p4") {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                lines.push(format!("{folder}/{name} {}\n", sha256(&path)));
            }
        }
    }
    let record = format!("shared/records/{record}/record.p4");
    lines.push(format!("{record} {}\n", sha256(&here("p4").join(&record))));
    lines.sort();
    sha256_of(lines.concat().as_bytes())
}

#[test]
fn the_report_on_the_tofino_is_of_these_sources() {
    let text = std::fs::read_to_string(here("compiled/tofino/resources.toml")).unwrap();
    let report: ChipReport = toml::from_str(&text).unwrap();
    for program in &report.program {
        let OnChip {
            record,
            target,
            options,
            ..
        } = program;
        assert_eq!(
            program.sources_sha256,
            sources_on_chip(record),
            "{target}, {record}, {options:?}: compile it with the command in \
             compiled/tofino/resources.toml, then run scripts/p4_resources.py"
        );
    }
    for (record, wanted) in [("paper_four", 2), ("paper_eight", 2), ("default", 4)] {
        let of_record = |program: &&OnChip| program.record == record;
        assert!(
            report.program.iter().filter(of_record).count() >= wanted,
            "{record}"
        );
    }
}

/// The size of a structure that DPDK's pipeline (22.11) can address, in bytes. It does not report
/// an offset beyond that, but takes it modulo this.
const ADDRESSED_BYTES: u32 = 256;

/// The operands of a `.spec` beyond that size, and the number of all operands.
fn out_of_reach(spec: &str) -> (Vec<String>, usize) {
    // Where each field of each structure ends, and the structure of each operand's name.
    let mut ends: HashMap<(&str, &str), u32> = HashMap::new();
    let mut structures = HashMap::new();
    let (mut structure, mut end_bits) = (None, 0);
    let (mut found, mut operands) = (Vec::new(), 0);
    for line in spec.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), structure) {
            (["struct", name, "{"], _) => (structure, end_bits) = (Some(*name), 0),
            (["}"], _) => structure = None,
            ([bits, field], Some(of)) => {
                let digits: String = bits.chars().filter(char::is_ascii_digit).collect();
                end_bits += digits.parse::<u32>().unwrap();
                ends.insert((of, field), end_bits);
            }
            (["header", name, "instanceof", of], _) => drop(structures.insert(*name, *of)),
            (["metadata", "instanceof", of], _) => drop(structures.insert("m", of)),
            (words, _) => {
                for word in words {
                    let (of, field) = match word.split('.').collect::<Vec<_>>()[..] {
                        ["h", header, field] => (structures[header], field),
                        ["m", field] => (structures["m"], field),
                        _ => continue,
                    };
                    operands += 1;
                    if ends[&(of, field)] > 8 * ADDRESSED_BYTES {
                        found.push((*word).to_owned());
                    }
                }
            }
        }
    }
    (found, operands)
}

#[test]
fn instructions_name_the_first_256_bytes_of_a_structure() {
    let manifest = manifest();
    let specs = manifest.artefact.iter().map(|artefact| &artefact.artefact);
    for artefact in specs.filter(|artefact| artefact.ends_with(".spec")) {
        let spec = std::fs::read_to_string(here("compiled").join(artefact)).unwrap();
        let (found, operands) = out_of_reach(&spec);
        assert!(operands > 400, "{artefact}: {operands} operands");
        assert_eq!(found, Vec::<String>::new(), "{artefact}");
    }
}

#[test]
fn what_is_known_behind_a_queue_is_refused_elsewhere() {
    let definition = written("queue");
    let layout = Layout::compile(&definition, false).unwrap();
    let refused = P4Record::new(&definition, &layout).unwrap_err();
    assert_eq!(refused, Unsupported::Input(Input::QueueDepth));
}

#[test]
fn operands_behind_256_bytes_are_found() {
    let spec = "struct rest_t {\n\tvarbit<2040> data\n}\nstruct a_t {\n\tbit<2040> far\n\t\
                bit<8> last\n\tbit<8> more\n}\nheader rest instanceof rest_t\nheader a instanceof \
                a_t\nmetadata instanceof a_t\napply {\n\textract h.a\n\tmov h.a.last m.more\n\t\
                mov h.a.more m.far\n}\n";
    let found = ["m.more", "h.a.more"].map(str::to_owned).to_vec();
    assert_eq!(out_of_reach(spec), (found, 4));
}
