// SPDX-License-Identifier: Apache-2.0
//! What only a driver knows of a frame: the program in the kernel is bound to its interface, and asks.

use std::process::Command;

use crate::exact::{NO_TIMEOUTS, equal, untimed};
use crate::kernel::XDP;
use crate::link::{Ended, FAR, Link, NEAR};
use crate::support::{Folder, command, office};

const OFFICE_PACKETS: &str = "13035";

const BY_TAG: &str = r#"
[key]
fields = ["source_address", "destination_address", "protocol", "vlan", "inner_vlan"]
[[feature]]
name = "packets"
op = "count"
[[feature]]
name = "frame_bytes"
op = "sum"
of = "frame_length"
[[feature]]
name = "priorities"
op = "bit_or"
of = "vlan_priority"
"#;

/// Puts a tag on every frame that leaves, where a card's driver has one that it took out: beside the frame.
const TAGGING: &str = r#"
#include <linux/bpf.h>
static long (*bpf_skb_vlan_push)(void *skb, __be16 protocol, __u16 control) = (void *)18;
__attribute__((section("tc"), used)) int put_tag(struct __sk_buff *skb)
{
    bpf_skb_vlan_push(skb, __builtin_bswap16(0x8100), 3 << 13 | 7);
    return 0;
}
char LICENSE[] __attribute__((section("license"), used)) = "GPL";
"#;

fn tag_what_leaves(link: &Link, folder: &Folder) {
    let source = folder.write("tagging.c", TAGGING);
    let object = folder.file("tagging.o");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let mut compile = Command::new(clang);
    compile.args(["-O2", "-target", "bpf", "-c", &source, "-o", &object]);
    compile.arg(format!(
        "-I/usr/include/{}-linux-gnu",
        std::env::consts::ARCH
    ));
    assert!(compile.status().unwrap().success());
    link.shell(&format!(
        "tc qdisc add dev {NEAR} clsact && tc filter add dev {NEAR} egress bpf da obj {object} sec tc"
    ));
}

fn recorded(link: &Link, options: &[&str]) -> Ended {
    let fixed = ["-w", "live.csv", "--packets", OFFICE_PACKETS];
    let recording = link.record(&[FAR], &[&fixed, &NO_TIMEOUTS[..], options].concat());
    assert!(link.replay(&office(), &["--pps", "10000"]));
    recording.end().balanced(0)
}

/// The ring puts such tags back into the frames, and the driver tells them to the program that is bound.
#[test]
fn tags_that_the_driver_took_out_are_seen() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    let definition = folder.write("by-tag.toml", BY_TAG);
    tag_what_leaves(&link, &folder);
    let of_ring = recorded(&link, &["--definition", &definition]);
    let expected = untimed(&of_ring.folder.read("live.csv"));
    let is_tagged = |line: &&String| line.contains(",7,");
    assert_eq!(expected.iter().filter(is_tagged).count(), expected.len());
    for options in [
        "--xdp-mode native",
        "--table row-lock --microflow-slots 7",
        "--threads 2",
    ] {
        let options: Vec<&str> = options.split(' ').collect();
        let options = [&["--definition", &definition], &XDP[..], &options].concat();
        let ended = recorded(&link, &options);
        equal(&ended, &expected);
        let bytes = ended.count("bytes_received");
        assert_eq!(bytes, of_ring.count("bytes_received"), "{options:?}");
        assert!(!ended.said.contains("rxvlan"), "{}", ended.said);
    }
    // In generic mode nobody tells, which is said.
    let generic = [&XDP[..], &["--xdp-mode", "generic"]].concat();
    let generic = [&["--definition", &definition], &generic[..]].concat();
    let ended = recorded(&link, &generic);
    assert!(
        ended.said.contains("ethtool -K vb rxvlan off"),
        "{}",
        ended.said
    );
    let seen = untimed(&ended.folder.read("live.csv"));
    assert_eq!(seen.iter().filter(is_tagged).count(), 0);
}

/// An interface that has no driver to ask has the program that does not.
#[test]
fn without_a_driver_that_tells_tags_are_those_of_frames() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    let definition = folder.write("by-tag.toml", BY_TAG);
    link.ip(&["link", "add", "bridge", "type", "bridge"]);
    link.ip(&["link", "set", "bridge", "up"]);
    let options = [&["-w", "live.csv", "--definition", &definition], &XDP[..]].concat();
    let ended = link.record(&["bridge"], &options).interrupt().balanced(0);
    assert!(ended.said.contains("generic mode"), "{}", ended.said);
}

/// A veth pair has no clock: its driver tells none, and the feature is absent in every record, never 0.
#[test]
fn hardware_timestamps_are_the_drivers_or_absent() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    let text = "[key]\nfields = [\"protocol\"]\n\
                [[feature]]\nname = \"packets\"\nop = \"count\"\n\
                [[feature]]\nname = \"seen_ns\"\nop = \"last\"\nof = \"hardware_timestamp\"\n";
    let definition = folder.write("clock.toml", text);
    let asked = [&["--definition", &definition], &XDP[..]].concat();
    let ended = recorded(&link, &asked);
    let records = ended.folder.read("live.csv");
    let mut lines = records.lines();
    assert_eq!(lines.next(), Some("protocol,packets,seen_ns,end_reason"));
    let rest: Vec<&str> = lines.collect();
    assert!(
        rest.len() > 1 && rest.iter().all(|line| line.contains(",,")),
        "{rest:?}"
    );
    // Bound to one interface, in native mode: no other is possible.
    let inside = |words: &[&str]| {
        let mut command = link.inside(command([""; 0]).get_program().to_str().unwrap());
        let output = command
            .args(["record", "-w", "x.csv"])
            .args(&asked)
            .args(words);
        let output = output.current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    for words in [
        &["-i", NEAR, "-i", FAR][..],
        &["-i", FAR, "--xdp-mode", "generic"],
    ] {
        let said = inside(words);
        assert!(
            said.contains("one -i, and --xdp-mode native or auto"),
            "{said}"
        );
    }
    let said = inside(&["-i", "lo"]);
    assert!(
        said.contains("lo takes no program that asks its driver"),
        "{said}"
    );
}
