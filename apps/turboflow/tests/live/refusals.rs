// SPDX-License-Identifier: Apache-2.0
//! Cases in which the XDP engine cannot start: one error names what is missing, and other programs
//! stay attached.

use crate::kernel::has_program;
use crate::link::{FAR, Link, NEAR};
use crate::support::{Folder, command};

/// A link with a Linux bridge, which has no native mode.
fn with_bridge() -> Option<Link> {
    let link = Link::for_xdp()?;
    link.ip(&["link", "add", "bridge", "type", "bridge"]);
    link.shell("for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $f; done");
    link.ip(&["link", "set", "bridge", "up"]);
    Some(link)
}

/// The error of the program, which must exit with 2. `by` is a command that execs the program.
#[track_caller]
fn refused(link: &Link, by: &[&str], options: &str) -> String {
    let program = command([""; 0]).get_program().to_os_string();
    let folder = Folder::new();
    let mut words = by.to_vec();
    words.push(program.to_str().unwrap());
    let output = link
        .inside(words[0])
        .args(&words[1..])
        .args(["record", "-w", "x.csv", "--engine", "xdp"])
        .args(options.split_whitespace())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    said
}

#[test]
fn all_missing_rights_are_named_at_once() {
    let Some(link) = Link::for_xdp() else { return };
    let lacks = |set: &str| {
        let by = ["setpriv", "--inh-caps=-all", "--bounding-set", set];
        refused(&link, &by, "-i vb")
    };
    let said = lacks("-all");
    assert!(
        said.contains("(CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN, CAP_NET_RAW)"),
        "{said}"
    );
    for words in [
        "setcap cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw=ep",
        "--engine software",
    ] {
        assert!(said.contains(words), "{said}");
    }
    let said = lacks("-net_raw");
    assert!(said.contains("(CAP_NET_RAW)"), "{said}");
    // CAP_SYS_ADMIN includes the rights to load programs.
    let said = lacks("-cap_38,-cap_39,-sys_admin");
    assert!(said.contains("(CAP_BPF, CAP_PERFMON)"), "{said}");
}

#[test]
fn lack_of_memory_is_not_reported_as_lack_of_rights() {
    let Some(link) = Link::for_xdp() else { return };
    let said = refused(
        &link,
        &["prlimit", "--as=1000000000"],
        "-i vb --ring-size 2GiB",
    );
    assert!(
        said.contains("too little memory") && said.contains("--ring-size"),
        "{said}"
    );
    assert!(!said.contains("CAP_"), "{said}");
}

#[test]
fn without_native_mode_generic_mode_is_proposed() {
    let Some(link) = with_bridge() else { return };
    let said = refused(&link, &["env"], "-i bridge --xdp-mode native");
    for words in [
        "bridge does not take",
        "native mode",
        "--xdp-mode generic",
        "--engine software",
    ] {
        assert!(said.contains(words), "{said}");
    }
}

/// Attaches a program that passes everything on.
fn put_program(link: &Link, on: &str, mode: &str) {
    // It does not support frames of several buffers.
    for end in [NEAR, FAR] {
        link.ip(&["link", "set", end, "mtu", "1500"]);
    }
    let folder = Folder::new();
    let object = folder.file("pass.o");
    let source = folder.write(
        "pass.c",
        b"__attribute__((section(\"xdp\"), used)) int pass(void *frame) { return 2; }\n",
    );
    link.shell(&format!("clang -O2 -target bpf -c {source} -o {object}"));
    link.shell(&format!("ip link set dev {on} {mode} obj {object} sec xdp"));
}

/// If one of several interfaces is not available, programs on the others stay, or are named if they
/// were removed.
#[test]
fn programs_removed_in_vain_are_named() {
    let Some(link) = with_bridge() else { return };
    put_program(&link, FAR, "xdp");
    assert!(has_program(&link));
    let said = refused(
        &link,
        &["env"],
        "-i vb -i bridge --xdp-mode native --replace",
    );
    assert!(said.contains("bridge does not take"), "{said}");
    assert!(has_program(&link), "{said}");
    assert!(!said.contains("not restored"), "{said}");
    put_program(&link, "bridge", "xdpgeneric");
    let said = refused(
        &link,
        &["env"],
        "-i vb -i bridge --xdp-mode native --replace",
    );
    assert!(
        said.contains("detached, and not restored: program "),
        "{said}"
    );
    assert!(
        said.contains(" of vb, program ") && said.contains(" of bridge"),
        "{said}"
    );
    assert!(!has_program(&link));
}

#[test]
fn the_output_for_unparsed_frames_must_be_a_file() {
    let Some(link) = Link::for_xdp() else { return };
    for name in ["-", "strange-%Y.pcap"] {
        let said = refused(&link, &["env"], &format!("-i vb --unparsed-to {name}"));
        assert!(
            said.contains("--unparsed-to") && said.contains("choose a name"),
            "{said}"
        );
    }
}
