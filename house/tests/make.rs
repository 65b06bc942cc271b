// SPDX-License-Identifier: Apache-2.0
//! The messages of `make` on a machine with missing packages.

use std::path::PathBuf;
use std::process::Command;

use turboflow_testing::{Need, is_missing};

/// The output of one call of make, from both streams.
fn make(arguments: &[&str], path: Option<&str>) -> String {
    let all = std::env::var_os("PATH").unwrap_or_default();
    let program: Option<PathBuf> = std::env::split_paths(&all)
        .map(|folder| folder.join("make"))
        .find(|program| program.is_file());
    let mut command = Command::new(program.expect("the test needs it"));
    command.arg("--no-print-directory").args(arguments);
    command.current_dir(turboflow_house::root());
    // Make must not see the variables of a make that runs the tests.
    for name in ["MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "TURBOFLOW_CI"] {
        command.env_remove(name);
    }
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let output = command.output().expect("make starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned() + &said
}

#[test]
fn one_line_names_all_that_is_left_out_and_the_packages_to_install() {
    if is_missing(&[Need::Tool("make")]) {
        return;
    }
    let left_out = |xdp: &str, dpi: &str, dpdk: &str| {
        let lacked = [
            format!("LACKED={xdp}"),
            format!("LACKED_DPI={dpi}"),
            format!("LACKED_DPDK={dpdk}"),
        ];
        let [xdp, dpi, dpdk] = &lacked;
        make(&["--silent", "left-out", xdp, dpi, dpdk, PKG_CONFIG], None)
    };
    assert_eq!(left_out("", "", ""), "");
    assert_eq!(
        left_out("clang zlib1g-dev", "", ""),
        "make: built without the xdp engine (--engine xdp); to have all: \
         apt-get install clang zlib1g-dev\n"
    );
    assert_eq!(
        left_out("libelf-dev", "libndpi-dev", "libdpdk-dev"),
        "make: built without the xdp engine (--engine xdp); \
         applications (--dpi, nDPI 4.2 or newer); \
         turboflow-swx (--p4-pipeline swx); to have all: \
         apt-get install libelf-dev libndpi-dev libdpdk-dev\n"
    );
    // With an empty `PATH`, there is no clang, and no pkg-config that finds libraries.
    let said = make(&["--silent", "left-out"], Some("/nonexistent"));
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("apt-get install clang"), "{said}");
    assert!(
        said.ends_with(" libndpi-dev libdpdk-dev pkg-config\n"),
        "{said}"
    );
}

/// Decides the presence of libraries without looking at this machine.
const PKG_CONFIG: &str = "LACKED_PKG_CONFIG=";

#[test]
fn kafka_is_missed_only_where_it_was_asked_for() {
    if is_missing(&[Need::Tool("make")]) {
        return;
    }
    let lacked = "LACKED_KAFKA=libssl-dev";
    assert_eq!(make(&["--silent", "asked-kafka", lacked], None), "");
    let asked = make(&["--dry-run", "build", lacked, "KAFKA=1"], None);
    assert!(asked.contains("apt-get install libssl-dev"), "{asked}");
    let unasked = make(&["--dry-run", "build", lacked], None);
    assert!(!unasked.contains("libssl-dev"), "{unasked}");
}

#[test]
fn missing_packages_turn_features_off() {
    if is_missing(&[Need::Tool("make")]) {
        return;
    }
    for target in ["run", "test", "lint"] {
        let without = make(&["--dry-run", target, "LACKED=clang"], None);
        assert!(!without.contains("turboflow/kernel"), "{without}");
        let with = make(&["--dry-run", target, "LACKED="], None);
        assert!(with.contains("--features turboflow/kernel"), "{with}");
        // CI must have every package.
        let ci = ["--dry-run", target, "LACKED=clang", "TURBOFLOW_CI=1"];
        assert!(make(&ci, None).contains("--features turboflow/kernel"));
    }
    for (variable, package, feature) in [
        ("LACKED", "libelf-dev", "turboflow/kernel"),
        ("LACKED_DPI", "libndpi-dev", "turboflow/dpi"),
        ("LACKED_DPDK", "libdpdk-dev", "turboflow-swx/dpdk"),
    ] {
        let run = make(
            &["--dry-run", "run", &format!("{variable}={package}")],
            None,
        );
        assert!(!run.contains(feature), "{run}");
        let command = run.lines().find(|line| line.contains("apt-get install"));
        assert!(command.is_some_and(|line| line.contains(package)), "{run}");
    }
}

/// Runs `scripts/run-tests.sh` with a fake cargo that prints invented outcomes.
#[test]
fn the_last_line_sums_up_passed_failed_and_skipped_tests() {
    let folder = std::env::temp_dir().join(format!("turboflow-make-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder is writable");
    let cargo = folder.join("cargo");
    let script = "#!/bin/sh\n\
        [ \"$1 $2 $3\" = 'test --no-fail-fast --workspace' ] || exit 9\n\
        cat <<'END'\n\
        test a::b ... ok\n\
        ---- c::d stdout ----\n\
        test result: FAILED. 7 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out\n\
        test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\
        END\n\
        cat >> \"$TURBOFLOW_SKIPPED\" <<'END'\n\
        SKIPPED: x a::b: needs clang\n\
        SKIPPED: x a::b: needs clang\n\
        SKIPPED: x a::c: needs clang\n\
        SKIPPED: y d: needs real captures\n\
        SKIPPED IN PART: y e: needs real captures\n\
        END\n\
        exit 101\n";
    std::fs::write(&cargo, script).expect("the folder exists");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", "chmod +x \"$0/cargo\" && exec scripts/run-tests.sh"])
        .arg(&folder)
        .current_dir(turboflow_house::root())
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("CARGO_TARGET_DIR", &folder)
        .output()
        .expect("sh starts");
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(101), "{said}");
    assert!(said.contains("\nfailed:\n    c::d\n"), "{said}");
    assert_eq!(
        said.lines().last(),
        Some(
            "make test: 9 passed, 1 failed, 3 skipped (needs clang: 2; needs real captures: 1), \
             1 passed in part (needs real captures: 1), 2 ignored"
        )
    );
}
