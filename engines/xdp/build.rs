// SPDX-License-Identifier: Apache-2.0
//! Compiles the XDP program with clang if the feature `kernel` is enabled; does nothing otherwise.

use std::path::PathBuf;
use std::process::Command;

use turboflow_record::{Input, KeyField};

const SOURCES: [&str; 27] = [
    "bound.h",
    "bridge.h",
    "dropped.h",
    "fold.h",
    "inputs.h",
    "ip.h",
    "judged.h",
    "layout.h",
    "link.h",
    "load.h",
    "microflow.bpf.c",
    "orders.h",
    "parse.h",
    "place.h",
    "plan.h",
    "planned.h",
    "reasons.h",
    "returned.h",
    "row.h",
    "spread.h",
    "table.h",
    "tap.h",
    "tested.h",
    "ticks.h",
    "unparsed.h",
    "values.h",
    "verdict.h",
];

fn main() {
    for source in SOURCES {
        println!("cargo::rerun-if-changed=bpf/{source}");
    }
    println!("cargo::rerun-if-env-changed=CLANG");
    if std::env::var_os("CARGO_FEATURE_KERNEL").is_some() {
        number_inputs();
        compile("microflow.bpf.o", &[]);
        compile("bound.bpf.o", &["-DBOUND"]);
        compile("offload.bpf.o", &["-DOFFLOAD"]);
        compile("bridge.bpf.o", &["-DOFFLOAD", "-DBRIDGE"]);
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

/// Writes the numbers of inputs as a C header for `bpf/values.h`, from the table of inputs.
fn number_inputs() {
    let names = Input::ALL.map(|input| input.name().to_uppercase());
    let header = format!(
        "#define INPUTS {}\n#define KEY_INPUTS {}\n",
        names.join(", "),
        KeyField::INPUTS.len()
    );
    let path = PathBuf::from(variable("OUT_DIR")).join("input_numbers.h");
    std::fs::write(&path, header)
        .unwrap_or_else(|error| panic!("{} cannot be written: {error}", path.display()));
}

fn compile(object: &str, defines: &[&str]) {
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let object = PathBuf::from(variable("OUT_DIR")).join(object);
    let status = Command::new(&clang)
        .args(["-g", "-O2", "-mcpu=v3", "-target", "bpf"])
        .args(["-Wall", "-Wextra", "-Werror"])
        .args(defines)
        .arg(format!("-I{}", variable("OUT_DIR")))
        .arg(format!("-I{}", variable("DEP_BPF_INCLUDE")))
        // Debian keeps <asm/types.h> there, which is not in a BPF target's search path.
        .arg(format!(
            "-I/usr/include/{}-linux-gnu",
            variable("CARGO_CFG_TARGET_ARCH")
        ))
        .args(["-c", "bpf/microflow.bpf.c", "-o"])
        .arg(&object)
        .status();
    match status {
        Ok(status) if status.success() => (),
        Ok(_) => panic!("{clang} could not compile bpf/microflow.bpf.c; its messages are above"),
        Err(error) => panic!(
            "{clang} does not run ({error}): the feature `kernel` needs it: apt-get install clang libelf-dev zlib1g-dev"
        ),
    }
}
