// SPDX-License-Identifier: Apache-2.0
//! The Debian package has the right files, and they work.

use std::fs;
use std::path::Path;
use std::process::Command;

use turboflow_testing::{Need, is_missing};

use crate::support::{Folder, finish, project};

#[test]
fn the_debian_package_has_program_unit_and_a_valid_configuration() {
    if is_missing(&[Need::Tool("dpkg-deb")]) {
        return;
    }
    let folder = Folder::new();
    let path = folder.path().display().to_string();
    let program = env!("CARGO_BIN_EXE_turboflow");
    let deb = project("packaging/deb.sh");
    let made = finish(Command::new(deb).args([program, &path, "-Znone"])).exits(0);
    let package = made.stdout.trim_end();
    assert!(package.contains("turboflow_0."), "{package}");
    let deb = |args: &[&str]| finish(Command::new("dpkg-deb").args(args)).exits(0).stdout;
    deb(&["-R", package, &folder.file("root")]);

    let inside = |name: &str| folder.file(&format!("root/{name}"));
    let programs = fs::read_dir(inside("usr/bin")).unwrap();
    let programs: Vec<_> = programs.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(programs, ["turboflow"]);
    let version = finish(Command::new(inside("usr/bin/turboflow")).arg("--version")).exits(0);
    let fields = deb(&["-f", package]);
    let (_, version) = version.stdout.trim_end().split_once(' ').unwrap();
    assert!(
        fields.contains(&format!("\nVersion: {version}\n")),
        "{fields}"
    );
    assert!(fields.contains("\nDepends: libc6 (>= 2."), "{fields}");
    let config = inside("etc/turboflow.toml");
    let mut check = Command::new(inside("usr/bin/turboflow"));
    finish(check.args(["run", "--config", &config, "--check"])).exits(0);
    assert_eq!(
        folder.read("root/DEBIAN/conffiles"),
        "/etc/turboflow.toml\n"
    );
    for script in ["postinst", "prerm", "postrm"] {
        finish(Command::new("sh").args(["-n", &inside(&format!("DEBIAN/{script}"))])).exits(0);
    }
    for name in [
        "usr/share/man/man1/turboflow.1.gz",
        "usr/share/man/man1/turboflow-record.1.gz",
        "usr/share/bash-completion/completions/turboflow",
        "usr/share/zsh/vendor-completions/_turboflow",
        "usr/share/fish/vendor_completions.d/turboflow.fish",
        "usr/share/doc/turboflow/operating.md",
    ] {
        assert!(Path::new(&inside(name)).exists(), "{name}");
    }
}

/// Probes need no query engine, so it has a package of its own.
#[test]
fn the_package_of_queries_has_their_program() {
    let query = Path::new(env!("CARGO_BIN_EXE_turboflow")).with_file_name("turboflow-query");
    let query = query.display().to_string();
    if is_missing(&[Need::Tool("dpkg-deb"), Need::Tool(&query)]) {
        return;
    }
    let folder = Folder::new();
    let path = folder.path().display().to_string();
    let deb = project("packaging/deb-query.sh");
    let made = finish(Command::new(deb).args([&*query, &path, "-Znone"])).exits(0);
    let package = made.stdout.trim_end();
    assert!(package.contains("turboflow-query_0."), "{package}");
    let root = folder.file("root");
    finish(Command::new("dpkg-deb").args(["-x", package, &root])).exits(0);
    let program = folder.file("root/usr/bin/turboflow-query");
    let version = finish(Command::new(program).arg("--version")).exits(0);
    assert_eq!(
        version.stdout,
        format!("turboflow-query {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn systemd_accepts_the_unit() {
    if is_missing(&[Need::Tool("systemd-analyze")]) {
        return;
    }
    let folder = Folder::new();
    // The unit is checked without the installed program.
    let unit = fs::read_to_string(project("packaging/turboflow.service")).unwrap();
    let program = env!("CARGO_BIN_EXE_turboflow");
    let unit = folder.write(
        "turboflow.service",
        unit.replace("/usr/bin/turboflow", program),
    );
    let mut verify = Command::new("systemd-analyze");
    let verified = finish(verify.args(["verify", "--man=no", "--recursive-errors=no", &unit]));
    assert_eq!(verified.exits(0).stderr, "");
}
