// SPDX-License-Identifier: Apache-2.0
//! Metadata that only the driver has: the program is bound to its interface and queries the driver.

use std::process::Command;

use crate::exact::{NO_TIMEOUTS, equal, untimed};
use crate::kernel::{OFFICE_PACKETS, XDP};
use crate::link::{Ended, FAR, Link, NEAR};
use crate::support::{Folder, command, office};

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

/// Adds a VLAN tag to the metadata of every outgoing frame, where a driver puts a tag that it
/// strips.
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

/// The packet ring puts such tags back into the frames. The bound program gets them from the
/// driver.
#[test]
fn tags_stripped_by_the_driver_are_seen() {
    let Some(link) = Link::for_xdp() else { return };
    let folder = Folder::new();
    let definition = folder.write("by-tag.toml", BY_TAG);
    tag_what_leaves(&link, &folder);
    let of_ring = recorded(&link, &["--definition", &definition]);
    let expected = untimed(&of_ring.folder.read("live.csv"));
    let is_tagged = |line: &&String| line.split(',').nth(3) == Some("7");
    assert_eq!(expected.iter().filter(is_tagged).count(), expected.len());
    for options in [
        "--xdp-mode native",
        "--table row-lock --microflow-slots 7",
        "--threads 2",
    ] {
        let options: Vec<&str> = options.split(' ').collect();
        let unparsed = ["--unparsed-to", "other.pcap", "--definition", &definition];
        let options = [&unparsed, &XDP[..], &options].concat();
        let ended = recorded(&link, &options);
        equal(&ended, &expected);
        // Unparsed frames are handed up as they arrived, without that tag.
        assert_eq!(ended.count("packets_non_ip"), 31);
        let are_handed_up = ended.said.contains("other.pcap has 31 frames");
        assert!(are_handed_up, "{}", ended.said);
        let bytes = ended.count("bytes_received");
        assert_eq!(bytes, of_ring.count("bytes_received"), "{options:?}");
        assert!(!ended.said.contains("rxvlan"), "{}", ended.said);
    }
    // In generic mode no driver provides tags, and the program warns.
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

/// The driver provides metadata but refuses native mode, because its peer has more queues. Then
/// only tags in the frames are seen, and the program warns. `hardware_timestamp` has no such
/// fallback, and a program that was removed for this one is named.
#[test]
fn a_driver_that_refuses_native_mode_is_not_bound_in_another() {
    let Some(link) = Link::for_xdp() else { return };
    let folder = Folder::new();
    let words = "link add na numtxqueues 4 type veth peer name nb numrxqueues 1 numtxqueues 1";
    link.ip(&words.split(' ').collect::<Vec<_>>());
    for end in ["na", "nb"] {
        link.ip(&["link", "set", end, "up"]);
    }
    let definition = folder.write("by-tag.toml", BY_TAG);
    let options = [&["-w", "live.csv", "--definition", &definition], &XDP[..]].concat();
    let recording = link.record(&["nb"], &options);
    let clock = "[[feature]]\nname = \"x\"\nop = \"last\"\nof = \"hardware_timestamp\"\n";
    let clock = folder.write("clock.toml", clock);
    let mut command = link.inside(command([""; 0]).get_program().to_str().unwrap());
    command.args([
        "record",
        "-i",
        "nb",
        "-w",
        "x.csv",
        "--replace",
        "--definition",
        &clock,
    ]);
    let output = command
        .args(XDP)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("detached, and not restored: program "),
        "{said}"
    );
    let ended = recording.end();
    assert!(ended.said.contains("generic mode"), "{}", ended.said);
    assert!(
        ended.said.contains("ethtool -K nb rxvlan off"),
        "{}",
        ended.said
    );
}

/// For an interface whose driver provides no metadata, the unbound program is used.
#[test]
fn without_driver_metadata_tags_are_those_in_the_frames() {
    let Some(link) = Link::for_xdp() else { return };
    let folder = Folder::new();
    let definition = folder.write("by-tag.toml", BY_TAG);
    link.ip(&["link", "add", "bridge", "type", "bridge"]);
    link.ip(&["link", "set", "bridge", "up"]);
    let options = [&["-w", "live.csv", "--definition", &definition], &XDP[..]].concat();
    let ended = link.record(&["bridge"], &options).interrupt().balanced(0);
    assert!(ended.said.contains("generic mode"), "{}", ended.said);
}

/// A veth pair has no clock, so the feature is absent in every record and never 0. The tags, which
/// only the driver has, show that the driver was asked.
#[test]
fn hardware_timestamps_are_the_drivers_or_absent() {
    let Some(link) = Link::for_xdp() else { return };
    let folder = Folder::new();
    tag_what_leaves(&link, &folder);
    let text = "[key]\nfields = [\"vlan\", \"protocol\"]\n\
                [[feature]]\nname = \"packets\"\nop = \"count\"\n\
                [[feature]]\nname = \"seen_ns\"\nop = \"last\"\nof = \"hardware_timestamp\"\n";
    let definition = folder.write("clock.toml", text);
    let asked = [&["--definition", &definition], &XDP[..]].concat();
    let ended = recorded(&link, &asked);
    let records = ended.folder.read("live.csv");
    let mut lines = records.lines();
    assert_eq!(
        lines.next(),
        Some("vlan,protocol,packets,seen_ns,end_reason")
    );
    let rest: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert!(rest.len() > 1, "{records}");
    assert!(
        rest.iter()
            .all(|cells| cells[0] == "7" && cells[3].is_empty()),
        "{records}"
    );
    // The bound program needs exactly one interface, in native mode.
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
    for (words, why) in [
        (&["-i", NEAR, "-i", FAR][..], "there are 2 interfaces"),
        (
            &["-i", FAR, "--xdp-mode", "generic"],
            "use --xdp-mode native or auto",
        ),
        (&["-i", "lo"], "the driver of lo reports none"),
    ] {
        let said = inside(words);
        let is_why =
            said.contains("`hardware_timestamp` needs one interface") && said.contains(why);
        assert!(is_why, "{said}");
    }
}
