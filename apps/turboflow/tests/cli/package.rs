// SPDX-License-Identifier: Apache-2.0
//! Packages contain the right files, and work.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use turboflow_testing::{Need, is_missing};

use crate::support::{Folder, finish, project};

/// Makes a package of a program in a folder, and returns its path.
fn package(program: &str, folder: &Folder) -> String {
    let folder = folder.path().display().to_string();
    let mut make = Command::new(project("packaging/package.sh"));
    // The default compression takes most of the time.
    make.args(["deb", program, &folder, "--fast", "-Zgz"]);
    finish(&mut make).exits(0).stdout.trim_end().to_owned()
}

fn lacks_tools(others: &[Need<'_>]) -> bool {
    let cargo_deb = project("target/tools/bin/cargo-deb");
    let tools = ["dpkg-deb", "dpkg-shlibdeps", "xz", &*cargo_deb].map(Need::Tool);
    is_missing(&[&tools, others].concat())
}

#[test]
fn the_debian_package_has_program_unit_and_a_valid_configuration() {
    if lacks_tools(&[]) {
        return;
    }
    let folder = Folder::new();
    let package = &*package(env!("CARGO_BIN_EXE_turboflow"), &folder);
    assert!(package.contains("turboflow_0."), "{package}");
    let deb = |args: &[&str]| finish(Command::new("dpkg-deb").args(args)).exits(0).stdout;
    deb(&["-R", package, &folder.file("root")]);

    let inside = |name: &str| folder.file(&format!("root/{name}"));
    let programs = fs::read_dir(inside("usr/bin")).unwrap();
    let programs: Vec<_> = programs.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(programs, ["turboflow"]);
    let version = finish(Command::new(inside("usr/bin/turboflow")).arg("--version")).exits(0);
    let fields = deb(&["-f", package]);
    let (_, version) = version.stdout.split_once(' ').unwrap();
    let version = version.lines().next().unwrap();
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
        "usr/share/doc/turboflow/copyright",
        "usr/lib/systemd/system/turboflow.service",
    ] {
        assert!(Path::new(&inside(name)).exists(), "{name}");
    }
}

/// Probes need no query engine, so it has a package of its own.
#[test]
fn the_package_of_queries_has_their_program() {
    let query = Path::new(env!("CARGO_BIN_EXE_turboflow")).with_file_name("turboflow-query");
    let query = query.display().to_string();
    if lacks_tools(&[Need::Tool(&query)]) {
        return;
    }
    let folder = Folder::new();
    let package = &*package(&query, &folder);
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

/// The tool that makes RPM packages takes minutes to compile, so its list of files is compared.
#[test]
fn the_rpm_packages_have_the_files_of_the_debian_packages() {
    for manifest in ["apps/turboflow/Cargo.toml", "apps/sql/Cargo.toml"] {
        let text = fs::read_to_string(project(manifest)).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        let metadata = &manifest["package"]["metadata"];
        let assets = |of: &str| metadata[of]["assets"].as_array().unwrap().clone();
        let plain = |asset: &toml::Value| {
            let source = asset.as_str().unwrap().trim_start_matches("../");
            // Each kind of package has its own licence file and change log.
            let is_own = ["copyright", "LICENSE", "changelog.gz", "CHANGELOG.md"];
            let is_own = is_own.iter().any(|own| source.ends_with(own));
            (!is_own).then(|| source.to_owned())
        };
        let deb: BTreeSet<_> = assets("deb")
            .iter()
            .filter_map(|it| plain(&it[0]))
            .collect();
        let rpm = assets("generate-rpm");
        let rpm: BTreeSet<_> = rpm.iter().filter_map(|it| plain(&it["source"])).collect();
        assert_eq!(deb, rpm);
        for source in deb.iter().filter(|it| !it.starts_with("target/")) {
            let path = project(source.trim_end_matches("*.md"));
            assert!(Path::new(&path).exists(), "{source}");
        }
    }
}

#[test]
fn systemd_accepts_the_unit() {
    if is_missing(&[Need::Tool("systemd-analyze")]) {
        return;
    }
    let folder = Folder::new();
    // Checks the unit without the installed program.
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
