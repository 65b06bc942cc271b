// SPDX-License-Identifier: Apache-2.0
//! Finds the filter expression among the arguments, and compiles it.

use std::path::PathBuf;

use anyhow::{Context, bail};
use turboflow_capture::CaptureFile;
use turboflow_capture::filter::{Compiler, FileFilter, FilterError};
use turboflow_packet::TunnelSet;
use turboflow_run::RunConfig;

/// Link type `DLT_EN10MB` of libpcap.
const DATA_LINK_ETHERNET: u32 = 1;

/// Words that an expression can begin with (`man pcap-filter`).
const BEGINNINGS: [&str; 61] = [
    "!",
    "(",
    "aarp",
    "ah",
    "arp",
    "atalk",
    "broadcast",
    "carp",
    "clnp",
    "decnet",
    "dst",
    "esp",
    "ether",
    "fddi",
    "gateway",
    "geneve",
    "greater",
    "host",
    "icmp",
    "icmp6",
    "ifname",
    "igmp",
    "igrp",
    "inbound",
    "ip",
    "ip6",
    "ipx",
    "iso",
    "lat",
    "len",
    "less",
    "link",
    "llc",
    "lldp",
    "moprc",
    "mpls",
    "multicast",
    "net",
    "netbeui",
    "not",
    "on",
    "outbound",
    "pim",
    "port",
    "portrange",
    "ppp",
    "pppoed",
    "pppoes",
    "proto",
    "protochain",
    "rarp",
    "sca",
    "sctp",
    "slip",
    "src",
    "stp",
    "tcp",
    "tr",
    "udp",
    "vlan",
    "vrrp",
];

/// Moves a filter expression that follows the files out of the values of `-r`.
///
/// # Errors
/// The filter is a list of tunnels, probably meant for --decapsulate.
pub(crate) fn separate(
    files: &mut Vec<PathBuf>,
    filter: &mut Vec<String>,
    decapsulate: Option<&TunnelSet>,
) -> anyhow::Result<()> {
    let begins =
        |word: &std::path::Path| !word.exists() && word.to_str().is_some_and(begins_expression);
    // The first word is always a file.
    let start = files.iter().skip(1).position(|word| begins(word));
    if let Some(start) = start {
        let words = files.drain(start + 1..);
        let words: Vec<_> = words.map(|word| word.display().to_string()).collect();
        filter.splice(..0, words);
    }
    match (&filter[..], decapsulate) {
        ([word], Some(_)) if word.parse::<TunnelSet>().is_ok() => bail!(
            "`{word}` is read as a filter, because --decapsulate takes its list of tunnels after \
             `=`: write --decapsulate={word}, or '({word})' to filter by it"
        ),
        _ => Ok(()),
    }
}

fn begins_expression(text: &str) -> bool {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_alphanumeric());
    // A punctuation mark is a word of its own. No expression begins with a letter beyond ASCII.
    let word = text.get(..end.unwrap_or(text.len()).max(1));
    let goes_on = |c: char| !c.is_ascii() || matches!(c, '.' | '/' | '-' | '_');
    word.is_some_and(|word| BEGINNINGS.contains(&word) && !text[word.len()..].starts_with(goes_on))
}

pub(crate) fn joined(words: &[String]) -> Option<String> {
    (!words.is_empty()).then(|| words.join(" "))
}

/// Checks the expression for Ethernet, the link type of nearly all interfaces. The kernel's filter
/// is compiled later for the interface itself, which may not exist yet.
pub(super) fn check(run: &RunConfig) -> anyhow::Result<()> {
    if let Some(expression) = &run.source.filter {
        Compiler::load()?.for_files(expression, DATA_LINK_ETHERNET)?;
    }
    Ok(())
}

/// The filter for frames of files, if there is one.
pub(super) fn for_files(
    run: &RunConfig,
    files: &[CaptureFile],
) -> anyhow::Result<Option<FileFilter>> {
    let Some(expression) = &run.source.filter else {
        return Ok(None);
    };
    let link_types: Vec<_> = files.iter().filter_map(CaptureFile::link_type).collect();
    let compiler = Compiler::load()?;
    let filter = FileFilter::compile(&compiler, expression, &link_types);
    match filter {
        // The user may have mistyped the name of a file.
        Err(FilterError::Expression { .. }) if !run.source.files.is_empty() => filter
            .with_context(|| format!("`{expression}` is neither a file nor a filter"))
            .map(Some),
        filter => Ok(Some(filter?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_expressions_from_names_of_files() {
        for text in [
            "tcp",
            "tcp port 443",
            "(udp)",
            "!arp",
            "not arp",
            "ip6",
            "len<100",
            "tcp[13]&2!=0",
            "net 192.0.2.0/24",
        ] {
            assert!(begins_expression(text), "{text}");
        }
        for text in [
            "",
            "b.pcap",
            "tcp.pcap",
            "ip-2026.pcap",
            "port/a.pcap",
            "net_1",
            "office",
            "-",
            "./tcp",
            "été.pcap",
            "数据.pcap",
            "tcp数据.pcap",
        ] {
            assert!(!begins_expression(text), "{text}");
        }
        assert!(BEGINNINGS.is_sorted());
    }
}
