// SPDX-License-Identifier: Apache-2.0
//! An engine is named only in its own folder, in the program's list of engines, and in very few
//! other files, so that adding one needs no search through the house.

use std::collections::BTreeSet;

use turboflow_house::sources;

/// The list of engines of the program.
const REGISTRY: &str = "apps/turboflow/src/engines.rs";
/// The folder with the program's adapter of each engine.
const ADAPTERS: &str = "apps/turboflow/src/engines";
/// Maximum number of other source files that may name an engine.
const MAX_FILES: usize = 4;

/// Files that build on an engine and therefore name it. They are listed one by one, so that a new
/// one is noticed here. `offload` runs the kernel's program, and the bridge runs `offload`.
/// Benchmarks and the evaluation run what they measure, and the evaluation also uses the hardware
/// models of two engines.
const STANDS_ON: [(&str, &[&str]); 3] = [
    (
        "xdp",
        &[
            "apps/turboflow/src/engines/bridge.rs",
            "apps/turboflow/src/engines/bridge/control.rs",
            "apps/turboflow/src/engines/bridge/open.rs",
            "apps/turboflow/src/engines/bridge/watch.rs",
            "apps/turboflow/src/engines/offload.rs",
            "apps/turboflow/src/engines/offload/inspects.rs",
            "apps/turboflow/src/engines/offload/open.rs",
            "engines/offload/benches/bridge.rs",
            "engines/offload/benches/table.rs",
            "engines/offload/src/abilities.rs",
            "engines/offload/src/flow.rs",
            "engines/offload/src/kernel/engine.rs",
            "engines/offload/src/kernel/own_counts.rs",
            "engines/offload/src/kernel/table.rs",
            "engines/offload/src/kernel/thread.rs",
            "engines/offload/src/verdict.rs",
            "lab/bench/src/offload.rs",
        ],
    ),
    (
        "offload",
        &[
            "apps/turboflow/src/engines/bridge.rs",
            "apps/turboflow/src/engines/bridge/decider.rs",
            "apps/turboflow/src/engines/bridge/open.rs",
            "lab/evaluation/src/parts/offload/card.rs",
            "lab/evaluation/src/parts/offload/mod.rs",
            "lab/evaluation/src/parts/offload/report/ours.rs",
        ],
    ),
    ("rtl", &["lab/evaluation/src/saptm/line.rs"]),
];

/// The files that build on an engine.
fn standing_on(engine: &str) -> impl Iterator<Item = &'static str> {
    let standing = STANDS_ON.iter().filter(move |(on, _)| *on == engine);
    standing.flat_map(|(_, paths)| paths.iter().copied())
}

/// Every engine, by its folder, except the golden model of the others, which is built into every
/// run.
fn engines() -> BTreeSet<String> {
    let folders = sources(&[".rs"]).into_iter().filter_map(|source| {
        let path = source.path.strip_prefix("engines/")?;
        Some(path.split_once('/')?.0.to_owned())
    });
    let mut engines: BTreeSet<String> = folders.collect();
    assert!(engines.remove("software"));
    engines
}

/// Whether a line names an engine.
fn names(line: &str, engine: &str) -> bool {
    let crate_name = format!("turboflow_engine_{engine}");
    match engine {
        // These are ordinary words, so only names that refer to the engine count.
        "records" | "collector" | "offload" => {
            line.contains(&crate_name) || line.contains(&format!("--engine {engine}"))
        }
        // P4.org is the author of telemetry specifications.
        "p4" => {
            let line = line.to_lowercase().replace("p4.org", "");
            line.split(|c: char| !c.is_alphanumeric())
                .any(|word| word == "p4")
        }
        engine => line.to_lowercase().contains(engine),
    }
}

#[test]
fn an_engine_is_named_in_few_files() {
    for engine in &engines() {
        let own = [
            format!("engines/{engine}/"),
            format!("{ADAPTERS}/{engine}/"),
            format!("{ADAPTERS}/{engine}.rs"),
            REGISTRY.to_owned(),
        ];
        let is_own = |path: &str| {
            own.iter().any(|own| path.starts_with(own))
                || standing_on(engine).any(|standing| standing == path)
        };
        let files: Vec<String> = sources(&[".rs"])
            .into_iter()
            .filter(|source| !source.is_test() && !is_own(&source.path))
            .filter(|source| source.product_lines().any(|(_, line)| names(line, engine)))
            .map(|source| source.path)
            .collect();
        eprintln!("{engine}: {files:?}");
        assert!(
            files.len() <= MAX_FILES,
            "{engine} is named in {} files besides its folder, its adapter and {REGISTRY}:\n{}",
            files.len(),
            files.join("\n")
        );
    }
}

#[test]
fn every_file_that_is_listed_stands_on_its_engine() {
    let all = sources(&[".rs"]);
    for (engine, paths) in STANDS_ON {
        for path in paths {
            let listed = all.iter().find(|source| source.path == *path);
            let listed = listed.unwrap_or_else(|| panic!("{path} is not there"));
            assert!(
                listed.text.lines().any(|line| names(line, engine)),
                "{path} does not name {engine}: take it from the list"
            );
        }
    }
}
