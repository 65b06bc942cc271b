// SPDX-License-Identifier: Apache-2.0
//! Dependencies between rooms: the table in `docs/architecture.md`, checked against `cargo
//! metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A crate, and the crates of the workspace that it may depend on.
struct Room {
    name: &'static str,
    knows: &'static [&'static str],
    /// The only external crates that it may depend on, if they are restricted.
    external: Option<&'static [&'static str]>,
}

const fn room(name: &'static str, knows: &'static [&'static str]) -> Room {
    Room {
        name,
        knows,
        external: None,
    }
}

impl Room {
    const fn with_external(mut self, crates: &'static [&'static str]) -> Self {
        self.external = Some(crates);
        self
    }
}

const RECORD: &str = "turboflow-record";
const MERGE: &str = "turboflow-merge";
const ENGINE: &str = "turboflow-engine";
const PACKET: &str = "turboflow-packet";
const CAPTURE: &str = "turboflow-capture";
const SOFTWARE: &str = "turboflow-engine-software";
const XDP: &str = "turboflow-engine-xdp";
const OFFLOAD: &str = "turboflow-engine-offload";
const P4: &str = "turboflow-engine-p4";
const RTL: &str = "turboflow-engine-rtl";
const SWX: &str = "turboflow-swx";
const AGGREGATE: &str = "turboflow-aggregate";
const FORMATS: &str = "turboflow-formats";
const TRANSPORT: &str = "turboflow-transport";
const KAFKA: &str = "turboflow-kafka";
const INSPECT: &str = "turboflow-inspect";
const NETLINK: &str = "turboflow-netlink";
const RUN: &str = "turboflow-run";
const QUERY: &str = "turboflow-query";
const SQL: &str = "turboflow-sql";
const DASHBOARD: &str = "turboflow-dashboard";
const TOP: &str = "turboflow-top";
const BRIDGE: &str = "turboflow-bridge";
const PLAN: &str = "turboflow-plan";
const ENRICH: &str = "turboflow-enrich";
const ALERT: &str = "turboflow-alert";
const CLASSIFY: &str = "turboflow-classify";
const WORKLOAD: &str = "turboflow-workload";
const ACCURACY: &str = "turboflow-accuracy";
const BENCH: &str = "turboflow-bench";
const EVALUATION: &str = "turboflow-evaluation";
const LAB: &str = "turboflow-lab";
const HOUSE: &str = "turboflow-house";
const TESTING: &str = "turboflow-testing";
const PROGRAM: &str = "turboflow";

/// The table. Rooms below `lab/` serve tests and measurements: the product may depend only on the
/// traffic generator among them, and the meter on none.
const ROOMS: [Room; 34] = [
    room(RECORD, &[]).with_external(&["ipnet", "thiserror", "toml"]),
    room(MERGE, &[RECORD]).with_external(&[]),
    room(ENGINE, &[RECORD, MERGE]).with_external(&["serde", "thiserror"]),
    room(PACKET, &[RECORD]).with_external(&[]),
    room(SOFTWARE, &[RECORD, MERGE, ENGINE]).with_external(&[]),
    room(NETLINK, &[]).with_external(&["rustix"]),
    room(XDP, &[RECORD, MERGE, ENGINE, PACKET, NETLINK]).with_external(&[
        "libbpf-rs",
        "libbpf-sys",
        "libc",
        "memmap2",
        "rustix",
        "thiserror",
    ]),
    room(OFFLOAD, &[RECORD, MERGE, ENGINE, XDP]).with_external(&["thiserror"]),
    room(P4, &[RECORD, MERGE, ENGINE, PACKET]).with_external(&["rustix", "thiserror"]),
    room(SWX, &[]).with_external(&["anyhow", "cc", "pkg-config"]),
    room(AGGREGATE, &[RECORD, MERGE]).with_external(&["memmap2"]),
    room(CAPTURE, &[PACKET, NETLINK]),
    room(INSPECT, &[RECORD, PACKET]).with_external(&[
        "cc",
        "libc",
        "md-5",
        "pkg-config",
        "rustix",
        "seccompiler",
        "sha2",
        "thiserror",
    ]),
    room(FORMATS, &[RECORD, MERGE]),
    room(TRANSPORT, &[RECORD, MERGE, ENGINE, FORMATS]),
    room(KAFKA, &[RECORD, FORMATS, TRANSPORT]).with_external(&[
        "rdkafka",
        "serde",
        "serde_json",
        "thiserror",
    ]),
    room(
        RUN,
        &[
            RECORD, MERGE, ENGINE, PACKET, CAPTURE, SOFTWARE, AGGREGATE, FORMATS, INSPECT,
        ],
    ),
    room(ENRICH, &[RECORD]).with_external(&["maxminddb", "serde", "thiserror"]),
    room(QUERY, &[RECORD, FORMATS, ENRICH]),
    room(SQL, &[RECORD, FORMATS, QUERY, DASHBOARD]),
    room(DASHBOARD, &[RECORD, FORMATS, QUERY, PLAN]).with_external(&[
        "axum",
        "futures-util",
        "hyper",
        "hyper-util",
        "rustix",
        "serde",
        "serde_json",
        "thiserror",
        "tokio",
    ]),
    room(TOP, &[RECORD, FORMATS, QUERY, RUN]),
    room(PLAN, &[RECORD, MERGE]).with_external(&["serde", "thiserror"]),
    room(ALERT, &[QUERY]).with_external(&["serde", "serde_json", "thiserror", "toml"]),
    room(CLASSIFY, &[RECORD]).with_external(&["thiserror"]),
    room(BRIDGE, &[RECORD, INSPECT, NETLINK]).with_external(&[
        "rustix",
        "serde",
        "thiserror",
        "toml",
    ]),
    room(WORKLOAD, &[RECORD, MERGE, PACKET]),
    room(ACCURACY, &[RECORD, MERGE]).with_external(&[]),
    room(
        BENCH,
        &[
            OFFLOAD, RECORD, MERGE, ENGINE, PACKET, CAPTURE, SOFTWARE, XDP, AGGREGATE, FORMATS,
            RUN, WORKLOAD, CLASSIFY,
        ],
    ),
    room(
        PROGRAM,
        &[
            RECORD, MERGE, ENGINE, PACKET, CAPTURE, SOFTWARE, XDP, OFFLOAD, AGGREGATE, FORMATS,
            TRANSPORT, KAFKA, QUERY, RUN, TOP, PLAN, WORKLOAD, INSPECT, BRIDGE, CLASSIFY, ALERT,
        ],
    ),
    room(
        EVALUATION,
        &[
            OFFLOAD, RTL, RECORD, MERGE, PACKET, CAPTURE, SOFTWARE, AGGREGATE, FORMATS, RUN, PLAN,
            WORKLOAD, ACCURACY, BENCH,
        ],
    ),
    room(LAB, &[BENCH, EVALUATION]),
    room(HOUSE, &[]),
    room(TESTING, &[]).with_external(&[]),
];

/// Additional dependencies of tests: the oracle, the test support, the golden model, and captures
/// for rooms that read frames of their own. An empty list allows the tests of all rooms.
const KNOWN_TO_TESTS: [(&str, &[&str]); 11] = [
    (WORKLOAD, &[]),
    (MERGE, &[]),
    (TESTING, &[]),
    (SOFTWARE, &[XDP, OFFLOAD, ENGINE, P4, SWX, RTL]),
    (CAPTURE, &[XDP, OFFLOAD, P4, SWX, INSPECT, BRIDGE, RTL]),
    (P4, &[SWX]),
    (RECORD, &[SWX]),
    (PACKET, &[SWX, BRIDGE, OFFLOAD, RTL]),
    (FORMATS, &[P4, SWX]),
    (RUN, &[P4, SWX]),
    (ENGINE, &[SWX]),
];

/// Features that only tests may turn on, and their crates.
const FOR_TESTS: [(&str, &str); 1] = [(ENGINE, "conformance")];

/// Heavy or far-reaching crates, and the only rooms that may use them.
const LEAVES: [(&str, &[&str]); 17] = [
    ("anyhow", &[PROGRAM, SQL, EVALUATION, LAB, SWX]),
    ("axum", &[DASHBOARD]),
    ("clap", &[PROGRAM, SQL, LAB]),
    ("datafusion", &[SQL]),
    ("flate2", &[CAPTURE, FORMATS]),
    ("hashbrown", &[BENCH, QUERY]),
    ("libbpf-rs", &[XDP]),
    ("libbpf-sys", &[XDP]),
    ("libc", &[CAPTURE, TRANSPORT, INSPECT, XDP, LAB]),
    ("libloading", &[CAPTURE]),
    ("maxminddb", &[ENRICH]),
    ("memmap2", &[AGGREGATE, CAPTURE, XDP, BENCH]),
    ("parquet", &[FORMATS]),
    ("ratatui", &[TOP, PROGRAM]),
    (
        "rustix",
        &[XDP, P4, PROGRAM, SQL, DASHBOARD, INSPECT, NETLINK, BRIDGE],
    ),
    ("signal-hook", &[PROGRAM]),
    ("zstd", &[CAPTURE, FORMATS]),
];

/// One dependency of a manifest.
struct Edge {
    from: String,
    to: String,
    in_tests: bool,
    /// The features that the dependency turns on.
    features: Vec<String>,
}

fn packages() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--manifest-path",
        ])
        .arg(turboflow_house::root().join("Cargo.toml"))
        .output()
        .expect("cargo is installed, because it runs this test");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    match metadata["packages"].take() {
        Value::Array(packages) => packages,
        other => panic!("packages are a list, not {other}"),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn edges() -> Vec<Edge> {
    let mut edges = Vec::new();
    for package in packages() {
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            edges.push(Edge {
                from: text(&package["name"]),
                to: text(&dependency["name"]),
                in_tests: dependency["kind"] == "dev",
                features: dependency["features"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(text)
                    .collect(),
            });
        }
    }
    assert!(!edges.is_empty());
    edges
}

/// Prefix of engine crates without their own row.
const ENGINES: &str = "turboflow-engine-";
const ANY_ENGINE: Room = room(ENGINES, &[RECORD, MERGE, ENGINE, PACKET]);
/// The rooms that may depend on any engine: the program and the benchmarks.
const KNOW_ENGINES: [&str; 2] = [PROGRAM, BENCH];

fn room_of(name: &str) -> &'static Room {
    let engine = name.starts_with(ENGINES).then_some(&ANY_ENGINE);
    ROOMS
        .iter()
        .find(|room| room.name == name)
        .or(engine)
        .unwrap_or_else(|| {
            panic!("{name} is no room yet: give it a row here and in docs/architecture.md")
        })
}

fn is_room(name: &str) -> bool {
    name.starts_with(ENGINES) || ROOMS.iter().any(|room| room.name == name)
}

#[test]
fn every_crate_is_a_room_with_a_description() {
    for package in packages() {
        let name = text(&package["name"]);
        room_of(&name);
        assert!(
            text(&package["description"]).len() > 20,
            "{name} has no description"
        );
        assert_eq!(package["license"], "Apache-2.0", "{name}");
    }
}

#[test]
fn no_room_knows_more_than_the_table_says() {
    for edge in edges().iter().filter(|edge| is_room(&edge.to)) {
        let known = room_of(&edge.from).knows.contains(&edge.to.as_str())
            || KNOW_ENGINES.contains(&edge.from.as_str()) && edge.to.starts_with(ENGINES);
        // An empty list allows the tests of all rooms.
        let known_to_tests = edge.in_tests
            && KNOWN_TO_TESTS.iter().any(|(known, to)| {
                *known == edge.to && (to.is_empty() || to.contains(&edge.from.as_str()))
            });
        let (from, to) = (&edge.from, &edge.to);
        assert!(
            known || known_to_tests,
            "{from} must not know {to} (docs/architecture.md)"
        );
    }
}

#[test]
fn inner_rooms_use_few_external_crates() {
    for edge in edges()
        .iter()
        .filter(|edge| !edge.in_tests && !is_room(&edge.to))
    {
        if let Some(external) = room_of(&edge.from).external {
            let (from, to) = (&edge.from, &edge.to);
            assert!(
                external.contains(&to.as_str()),
                "{from} must not depend on {to}"
            );
        }
    }
}

#[test]
fn heavy_crates_stay_in_their_leaves() {
    for edge in edges().iter().filter(|edge| !edge.in_tests) {
        if let Some((heavy, leaves)) = LEAVES.iter().find(|(heavy, _)| *heavy == edge.to) {
            let from = edge.from.as_str();
            assert!(
                leaves.contains(&from),
                "{heavy} belongs in {leaves:?}, not in {from}"
            );
        }
    }
}

/// The names of the crates below `lab/`.
fn laboratory() -> BTreeSet<String> {
    let lab = turboflow_house::root().join("lab");
    let lab = lab.canonicalize().expect("there is a laboratory");
    packages()
        .iter()
        .filter(|package| Path::new(&text(&package["manifest_path"])).starts_with(&lab))
        .map(|package| text(&package["name"]))
        .collect()
}

/// All crates of the workspace that a crate links with every feature on. External crates cannot
/// depend on the workspace, so the manifests of the workspace suffice.
fn linked_by(name: &str) -> BTreeSet<String> {
    let mut linked = BTreeSet::from([name.to_owned()]);
    let edges = edges();
    loop {
        let known = |edge: &&Edge| !edge.in_tests && linked.contains(&edge.from);
        let next = edges.iter().filter(known).map(|edge| &edge.to);
        let next: Vec<String> = next
            .filter(|to| is_room(to) && !linked.contains(*to))
            .cloned()
            .collect();
        if next.is_empty() {
            return linked;
        }
        linked.extend(next);
    }
}

#[test]
fn the_product_links_only_the_generator_of_the_laboratory() {
    let laboratory = laboratory();
    assert!(laboratory.len() > 3, "{laboratory:?}");
    let both = |name| -> Vec<String> {
        let linked = linked_by(name);
        linked.intersection(&laboratory).cloned().collect()
    };
    assert_eq!(both(PROGRAM), [WORKLOAD]);
    // The laboratory's program shows that transitive dependencies are found.
    assert!(both(LAB).contains(&ACCURACY.to_owned()));
}

/// `turboflow` meters as root, and `make run` builds it: it must not link a query engine.
#[test]
fn the_meter_links_no_query_engine() {
    assert!(!linked_by(PROGRAM).contains(SQL));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut tree = Command::new(cargo);
    tree.current_dir(turboflow_house::root());
    // No feature of the meter may bring one in.
    tree.args([
        "tree",
        "--locked",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
    ]);
    tree.args(["--format", "{p}", "--all-features", "--package"]);
    let output = tree.arg(PROGRAM).output().expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let packages = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(packages.contains("parquet v"), "{packages}");
    for engine in ["datafusion", "sqlparser", "object_store", "axum"] {
        let found = packages.lines().find(|line| line.starts_with(engine));
        assert_eq!(found, None);
    }
}

#[test]
fn test_features_are_turned_on_by_tests_alone() {
    for (whose, feature) in FOR_TESTS {
        let turned_on = |edge: &&Edge| {
            edge.to == whose && edge.features.iter().any(|turned_on| turned_on == feature)
        };
        let edges = edges();
        let edges: Vec<&Edge> = edges.iter().filter(turned_on).collect();
        assert!(!edges.is_empty(), "no test turns on {feature} of {whose}");
        for edge in edges {
            let from = &edge.from;
            assert!(edge.in_tests, "{from} turns on {feature} of {whose}");
        }
    }
    for package in packages() {
        let name = text(&package["name"]);
        let features = package["features"].as_object().into_iter().flatten();
        for (feature, implied) in features {
            for (_, for_tests) in FOR_TESTS {
                let implied = implied.to_string();
                assert!(
                    !implied.contains(for_tests),
                    "{feature} of {name} turns on {for_tests}"
                );
            }
        }
    }
}

#[test]
fn crates_have_no_dependency_cycle() {
    let mut knows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for edge in edges() {
        knows.entry(edge.from).or_default().insert(edge.to);
    }
    // Removes crates without remaining dependencies until nothing changes. Only cycles remain.
    loop {
        let left: BTreeSet<String> = knows.keys().cloned().collect();
        let before = knows.len();
        knows.retain(|_, known| known.iter().any(|other| left.contains(other)));
        if knows.len() == before {
            break;
        }
    }
    assert!(knows.is_empty(), "in a cycle: {:?}", knows.keys());
}
