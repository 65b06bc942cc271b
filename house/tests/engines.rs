// SPDX-License-Identifier: Apache-2.0
//! An engine is known in its own folder and in the program's list of engines, and hardly anywhere
//! else, so that a new one is added without a search through the house.

use turboflow_house::sources;

/// The list of engines of the program.
const REGISTRY: &str = "apps/turboflow/src/engines.rs";
/// Source files besides an engine's folder and the list that may name the engine: the program's
/// adapter of it, and the laboratory's benchmark.
const MAX_FILES: usize = 4;

/// What stands on an engine names it: another engine's folder, the program's adapter of that, and
/// its benchmark. The evaluation runs the model that the engine of offload has of a card.
const STANDS_ON: [(&str, &[&str]); 2] = [
    (
        "xdp",
        &[
            "engines/offload/",
            "apps/turboflow/src/engines/offload",
            "apps/turboflow/src/engines/bridge",
            "lab/bench/src/offload.rs",
        ],
    ),
    (
        "offload",
        &[
            "apps/turboflow/src/engines/bridge",
            "lab/evaluation/src/parts/offload",
        ],
    ),
];

#[test]
fn an_engine_is_named_in_few_files() {
    for engine in ["xdp", "offload", "records", "collector"] {
        let folder = format!("engines/{engine}/");
        let crate_name = format!("turboflow_engine_{engine}");
        let stands_on_it = |path: &str| {
            let mut standing = STANDS_ON.iter().filter(|(on, _)| *on == engine);
            standing.any(|(_, paths)| paths.iter().any(|start| path.starts_with(start)))
        };
        let is_own =
            |path: &str| path.starts_with(&folder) || path == REGISTRY || stands_on_it(path);
        let names = |line: &str| match engine {
            // English words: only what stands for the engine counts.
            "records" => line.contains(&crate_name) || line.contains("--engine records"),
            "collector" => line.contains(&crate_name) || line.contains("--engine collector"),
            // Cards offload work, too.
            "offload" => line.contains(&crate_name) || line.contains("--engine offload"),
            engine => line.to_lowercase().contains(engine),
        };
        let files: Vec<String> = sources(&[".rs"])
            .into_iter()
            .filter(|source| !source.is_test() && !is_own(&source.path))
            .filter(|source| source.product_lines().any(|(_, line)| names(line)))
            .map(|source| source.path)
            .collect();
        assert!(
            files.len() <= MAX_FILES,
            "{engine} is named in {} files besides its folder and {REGISTRY}:\n{}",
            files.len(),
            files.join("\n")
        );
    }
}
