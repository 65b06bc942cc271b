// SPDX-License-Identifier: Apache-2.0
//! Compiles the XDP program with clang where the feature `kernel` asks for it; does nothing otherwise.

use std::path::PathBuf;
use std::process::Command;

const SOURCES: [&str; 21] = [
    "bound.h",
    "dropped.h",
    "fold.h",
    "inputs.h",
    "ip.h",
    "layout.h",
    "link.h",
    "load.h",
    "microflow.bpf.c",
    "parse.h",
    "place.h",
    "plan.h",
    "planned.h",
    "reasons.h",
    "row.h",
    "spread.h",
    "table.h",
    "tested.h",
    "ticks.h",
    "unparsed.h",
    "values.h",
];

fn main() {
    for source in SOURCES {
        println!("cargo::rerun-if-changed=bpf/{source}");
    }
    println!("cargo::rerun-if-env-changed=CLANG");
    if std::env::var_os("CARGO_FEATURE_KERNEL").is_some() {
        compile("microflow.bpf.o", &[]);
        compile("bound.bpf.o", &["-DBOUND"]);
    }
}

fn compile(object: &str, defines: &[&str]) {
    let variable = |name| std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let object = PathBuf::from(variable("OUT_DIR")).join(object);
    let status = Command::new(&clang)
        .args(["-g", "-O2", "-mcpu=v3", "-target", "bpf"])
        .args(["-Wall", "-Wextra", "-Werror"])
        .args(defines)
        .arg(format!("-I{}", variable("DEP_BPF_INCLUDE")))
        // Debian keeps <asm/types.h> there, and a BPF target does not look for it.
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
