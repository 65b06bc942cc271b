// SPDX-License-Identifier: Apache-2.0
//! `turboflow p4 generate`: the sources of the P4 program.

use crate::support::{Folder, Ran, project, turboflow};

/// The path of a definition that ships with the engine.
fn definition(name: &str) -> String {
    project(&format!("engines/p4/definitions/{name}.toml"))
}

fn generate(target: &str, definition: &str, folder: &Folder) -> Ran {
    let to = folder.file("switch");
    turboflow([
        "p4",
        "generate",
        "--target",
        target,
        "--definition",
        definition,
        &to,
    ])
}

#[test]
fn writes_the_sources_that_come_with_the_engine() {
    for (target, name, command) in [
        ("v1model", "paper_four", "p4c-bm2-ss -I"),
        ("v1model", "queue", "p4c-bm2-ss -DBEHIND_QUEUE -I"),
        ("pna", "paper_four", "p4c-dpdk --arch pna"),
        ("tna", "paper_eight", "-DQUEUE_FEATURES -I"),
    ] {
        let folder = Folder::new();
        let said = generate(target, &definition(name), &folder).exits(0).stdout;
        assert!(said.contains(command), "{said}");
        for path in [
            format!("{target}/turboflow.p4"),
            "shared/lane.p4".to_owned(),
            format!("shared/records/{name}/record.p4"),
        ] {
            let own = project(&format!("engines/p4/p4/{path}"));
            assert_eq!(
                folder.read(&format!("switch/{path}")),
                std::fs::read_to_string(own).unwrap(),
                "{path}"
            );
        }
    }
}

#[test]
fn refuses_by_name_what_a_pipeline_cannot_fold() {
    let folder = Folder::new();
    let egress = folder.write(
        "egress.toml",
        "[[feature]]\nname = \"way\"\nop = \"last\"\nof = \"egress_interface\"\n",
    );
    let variance = folder.write(
        "variance.toml",
        "[[feature]]\nname = \"spread\"\nop = \"variance\"\nof = \"ttl\"\n",
    );
    for (target, definition, lacks) in [
        ("pna", definition("queue"), "the input `queue_depth`"),
        ("tna", egress, "the input `egress_interface`"),
        ("v1model", variance, "the variance of `ttl`"),
    ] {
        let said = generate(target, &definition, &folder).exits(2).stderr;
        assert!(said.contains(lacks), "{said}");
    }
}
