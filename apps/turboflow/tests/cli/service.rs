// SPDX-License-Identifier: Apache-2.0
//! Configurations of `turboflow run`: printed, checked, and refused with the line and the remedy.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use turboflow_testing::{Need, Talk, is_missing};

use crate::support::{Folder, command, libpcap, project, signal, turboflow};

#[test]
fn the_printed_configuration_is_valid() {
    let folder = Folder::new();
    let printed = turboflow(["run", "--print-config"]).exits(0).stdout;
    assert!(printed.contains("\nidle = \"30s\"\n"), "{printed}");
    let config = folder.write("turboflow.toml", &printed);
    turboflow(["run", "--config", &config, "--check"])
        .exits(0)
        .says(&["is valid"]);
}

#[test]
fn the_packaged_configuration_is_the_printed_one() {
    let printed = turboflow(["run", "--print-config"]).exits(0).stdout;
    let packaged = project("packaging/turboflow.toml");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&packaged, &printed).unwrap();
    }
    let mend = "UPDATE=1 cargo test -p turboflow --test cli writes it";
    assert!(fs::read_to_string(packaged).unwrap() == printed, "{mend}");
}

#[test]
fn a_wrong_configuration_is_refused_with_its_line() {
    let folder = Folder::new();
    for (text, words) in [
        (
            "[source]\ninterfaces = \"lo\"\n[timeouts]\nidel = \"1s\"",
            vec!["line 4", "did you mean `idle`"],
        ),
        (
            "interface = \"lo\"\nwrite = \"a.csv\"\nidel-timeout = \"1s\"",
            vec!["line 3", "did you mean `idle` in [timeouts]"],
        ),
        (
            "[source]\ninterfaces = \"lo\"\n[[output]]\nto = \"a.csv\"\n[meter]\nmax-flows = 0",
            vec!["turboflow.toml", "`max-flows` in [meter] must be from 1"],
        ),
        (
            "idle-timeout = \"1s\"\n[timeouts]\nidle = \"1s\"",
            vec!["line 1", "say the same thing"],
        ),
        (
            "[[output]]\nto = \"a.csv\"",
            vec!["`interfaces` in [source] is missing"],
        ),
        ("interface = ", vec!["line 1"]),
    ] {
        let config = folder.write("turboflow.toml", text);
        let ran = turboflow(["run", "--config", &config, "--check"]).exits(2);
        assert_eq!(ran.says(&words).stderr.lines().count(), 1);
        turboflow(["run", "--config", &config])
            .exits(2)
            .says(&words);
    }
    let missing = folder.file("missing.toml");
    turboflow(["run", "--config", &missing])
        .exits(2)
        .says(&["missing.toml", "cannot read"]);
    turboflow(["run"]).exits(2).says(&["--config"]);
}

#[test]
fn a_check_refuses_what_the_start_would_refuse() {
    let (folder, with_filters) = (Folder::new(), libpcap().is_met());
    let there = folder.file("flows.csv");
    let needed = format!("[source]\ninterfaces = \"lo\"\n[[output]]\nto = \"{there}\"\n");
    let written = |names: &[&str]| {
        let outputs = names
            .iter()
            .map(|name| format!("[[output]]\nto = \"{name}\"\n"));
        "[source]\ninterfaces = \"lo\"\n".to_owned() + &outputs.collect::<String>()
    };
    let by_udp = "netflow5+udp://127.0.0.1";
    for (text, words) in [
        (written(&["flows.xyz"]), "flows.xyz"),
        (written(&["a.csv", "./a.csv"]), "written twice"),
        (written(&[]), "[[output]] is missing"),
        (written(&["a-%j.csv"]), "%Y (year)"),
        (written(&[by_udp]) + "[flow]\nbiflow = true", "biflow"),
        (
            needed.clone() + "rotate = \"5m\"",
            "`rotate` in [[output]] needs an output whose name has a time",
        ),
        (
            needed.clone() + "rate = 9",
            "`rate` in [[output]] is of no use with",
        ),
        (
            needed.clone() + "format = \"ipfix\"",
            "whose extension selects the format",
        ),
        (written(&["-"]), "Add `format = \"csv\"` in [[output]]"),
        (
            written(&["ipfix+tls://127.0.0.1"]) + "tls-cert = \"a.pem\"",
            "`tls-cert` in [[output]] goes with `tls-key` in [[output]]",
        ),
        (
            needed.replace("\"lo\"", "[\"lo\", \"lo\"]"),
            "lo is named twice",
        ),
        (needed.replace("\"lo\"", "\"any\""), "any"),
        (
            needed.replace("\"lo\"", "\"lo\"\nring-size = \"1KiB\""),
            "`ring-size` in [source] must be from",
        ),
        (
            needed.replace("\"lo\"", "\"lo\"\nfiles = \"a.pcap\""),
            "a service does not read input files",
        ),
        (
            needed.clone() + "[engine]\nname = \"xdp\"\n[flow]\nbiflow = true",
            "engine `xdp` does not support `biflow` in [flow]",
        ),
        (
            needed.clone() + "[engine.xdp]\ndrop = true",
            "`drop` in [engine.xdp] is for engine `xdp`: add `name = \"xdp\"` in [engine]",
        ),
        (
            needed.clone() + "[service]\nuser = \"no-such-user\"",
            "no such user",
        ),
        (
            needed.clone() + "[engine.records]\nfrom = \"a.records\"",
            "`from` in [engine.records]: a service does not read input files",
        ),
        (
            needed.replace("interfaces = \"lo\"", "promiscuous = false")
                + "[engine]\nname = \"collector\"\n[engine.collector]\nlisten = \"udp://:9\"",
            "engine `collector` does not support `promiscuous` in [source]; leave it out",
        ),
        (
            written(&["flows", "other"]).replace(
                "to = \"flows\"",
                "to = \"flows\"\nformat = \"parquet\"\nnames = true",
            ),
            "turboflow.toml: flows: `names` in [[output]]",
        ),
        // One of several outputs is named.
        (
            written(&["a.csv", "b.parquet"]) + "names = true",
            "b.parquet: `names` in [[output]] is for CSV",
        ),
        (
            written(&["a.csv", "b.parquet"]) + "anonymize = \"no.key\"",
            "b.parquet: cannot read the key no.key",
        ),
        (
            written(&["a.csv", by_udp]) + "time-unit = \"us\"",
            "`time-unit` in [[output]] is of no use with netflow5+udp://127.0.0.1: it is for IPFIX",
        ),
        (
            "[engine]\nname = \"p4\"\n[[output]]\nto = \"a.csv\"".to_owned(),
            "the key `cpu-ports` in [source] is missing",
        ),
        (
            "[engine]\nname = \"p4\"\n[engine.p4]\npipeline = \"swx\"\n[[output]]\nto = \"a.csv\""
                .to_owned(),
            "line 4: `pipeline` in [engine.p4] is for `turboflow record`: a service meters live",
        ),
        (
            "[source]\ncpu-ports = \"lo\"\nring-size = 64\n[engine]\nname = \"p4\"\n\
             [[output]]\nto = \"a.csv\""
                .to_owned(),
            "`ring-size` in [source] must be from",
        ),
        (
            needed.replace("\"lo\"", "\"lo\"\n[flow]\nint-port = 70000"),
            "integer `70000`, write a number from 0 to 65535",
        ),
        (
            needed.clone() + "[engine]\nname = \"softwre\"",
            "there is no such engine; did you mean `software`?",
        ),
        (
            needed.clone() + "[engine]\nname = \"bpf\"",
            "write software or xdp or offload or p4 or collector",
        ),
        (
            needed.replace("\"lo\"", "\"lo\"\nfilter = \"tpc port 1\""),
            if with_filters {
                "tpc port 1"
            } else {
                "libpcap"
            },
        ),
    ] {
        let config = folder.write("turboflow.toml", &text);
        let ran = turboflow(["run", "--config", &config, "--check"]).exits(2);
        assert_eq!(
            ran.says(&[words, "turboflow.toml"]).stderr.lines().count(),
            1
        );
    }
    let filter = if with_filters {
        "\"lo\"\nfilter = \"tcp port 443\""
    } else {
        "\"lo\""
    };
    let config = folder.write("turboflow.toml", needed.replace("\"lo\"", filter));
    let ran = turboflow(["run", "--config", &config, "--check"]).exits(0);
    assert!(ran.stderr.ends_with("is valid\n"), "{}", ran.stderr);
    assert_eq!(folder.names(), ["turboflow.toml"]);
}

#[test]
fn a_check_names_missing_interfaces_and_folders() {
    let folder = Folder::new();
    let text =
        "[source]\ninterfaces = [\"nowhere0\"]\n[[output]]\nto = \"/no/such/folder/a.csv\"\n";
    let config = folder.write("turboflow.toml", text);
    let ran = turboflow(["run", "--config", &config, "--check"]).exits(0);
    ran.says(&["is valid", "interface nowhere0, folder /no/such/folder"]);
}

/// Configurations from the time before sections.
#[test]
fn old_keys_are_read_with_a_warning_for_each() {
    let folder = Folder::new();
    let there = folder.file("flows.csv");
    let text = format!("interface = \"lo\"\nwrite = [\"{there}\"]\n\nidle-timeout = \"5s\"\n");
    let config = folder.write("turboflow.toml", text);
    let ran = turboflow(["run", "--config", &config, "--check"]).exits(0);
    ran.says(&[
        &format!("{config}:1: \"interface\" is now \"interfaces\" in [source]"),
        &format!("{config}:2: \"write\" is now \"to\" in [[output]]"),
        &format!("{config}:4: \"idle-timeout\" is now \"idle\" in [timeouts]"),
        "is valid",
    ]);
}

/// Working flags can be turned into a configuration file.
#[test]
fn flags_are_printed_as_a_configuration() {
    let folder = Folder::new();
    let flows = folder.file("flows-%s.csv");
    let line = [
        "record",
        "-i",
        "lo",
        "-w",
        &flows,
        "-w",
        "ipfix+udp://127.0.0.1",
        "--rotate",
        "5m",
        "--export-mtu",
        "600",
        "--idle-timeout",
        "5s",
        "--print-config",
    ];
    let printed = turboflow(line).exits(0).stdout;
    for words in [
        "[source]\n",
        "[timeouts]\nidle = \"5s\"\n",
        "mtu = 600\n",
        "rotate = \"5m\"\n",
    ] {
        assert_eq!(printed.matches(words).count(), 1, "{words}: {printed}");
    }
    assert_eq!(printed.matches("[[output]]\n").count(), 2, "{printed}");
    let config = folder.write("turboflow.toml", &printed);
    let ran = turboflow(["run", "--config", &config, "--check"]).exits(0);
    assert_eq!(ran.says(&["is valid"]).stderr.lines().count(), 1);
    turboflow(["record", "-i", "lo", "--rotate", "5m", "--print-config"]).exits(2);
}

#[test]
fn rotation_needs_names_with_a_time() {
    let folder = Folder::new();
    // There is no such interface, but the options are checked first.
    let rotated = |name: &str, option: &str| {
        turboflow(["record", "-i", "missing0", "-w", &folder.file(name), option])
    };
    for (name, option, words) in [
        ("a.csv", "--rotate=5m", "name has a time"),
        ("a-%H.csv", "--rotate=10ms", "at least 1s"),
        ("a-%j.csv", "--rotate=5m", "%Y (year)"),
        ("a-%H.csv", "--keep=7d", "is one file until the run ends"),
        (
            "a-%H.csv",
            "--keep-size=1GB",
            "is one file until the run ends",
        ),
    ] {
        rotated(name, option).exits(2).says(&[words]);
    }
    let [day, minute] = ["a-%Y%m%d.csv", "a-%Y%m%d-%H%M.csv"].map(|name| folder.file(name));
    turboflow([
        "record", "-i", "missing0", "-w", &day, "-w", &minute, "--rotate", "1h", "--keep", "7d",
    ])
    .exits(2)
    .says(&["would also remove files of", "different beginnings"]);
    assert!(folder.names().is_empty());
}

/// Clients may send nothing or half a request.
#[test]
fn idle_clients_do_not_delay_the_health_of_a_running_service() {
    if is_missing(&[Need::Root]) {
        return;
    }
    let folder = Folder::new();
    let config = folder.write(
        "turboflow.toml",
        format!(
            "[source]\ninterfaces = \"lo\"\n[service]\nmetrics = \"127.0.0.1:0\"\n\
             [[output]]\nto = \"{}\"\n",
            folder.file("s-%Y.csv")
        ),
    );
    let mut service = command(["run", "--config", &config])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut talk = Talk::of(service.stderr.take().unwrap());
    talk.wait_for("metrics at http://");
    let address = talk.said().split_once("metrics at http://").unwrap().1;
    let address = address.split_once('/').unwrap().0.to_owned();
    // The service answers once it meters.
    talk.wait_for("lo");
    let mut idle: Vec<_> = (0..200)
        .map(|number| {
            let mut stream = TcpStream::connect(&address).unwrap();
            let begin: &[u8] = if number % 2 == 0 { b"" } else { b"GET /he" };
            stream.write_all(begin).unwrap();
            stream.set_nonblocking(true).unwrap();
            stream
        })
        .collect();
    let mut asking = TcpStream::connect(&address).unwrap();
    asking.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").unwrap();
    let mut reply = String::new();
    asking.read_to_string(&mut reply).unwrap();
    assert!(reply.ends_with("\r\n\r\nok\n"), "{reply}");
    // The reply arrived before the service gave up on any of the others.
    for stream in &mut idle {
        let heard = stream.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(heard, Err(ErrorKind::WouldBlock));
    }
    signal(&service, "TERM");
    let rest = talk.rest().to_owned();
    assert_eq!(service.wait().unwrap().code(), Some(0), "{rest}");
}

#[test]
fn how_long_files_are_kept_is_part_of_the_configuration() {
    let folder = Folder::new();
    let line = [
        "record",
        "-i",
        "lo",
        "-w",
        &folder.file("f-%s.csv"),
        "--rotate",
        "5m",
    ];
    let kept = ["--keep", "30d", "--keep-size", "2GiB", "--print-config"];
    let printed = turboflow(line.iter().chain(&kept)).exits(0).stdout;
    for words in ["keep = \"30d\"\n", "keep-size = \"2GiB\"\n"] {
        assert_eq!(printed.matches(words).count(), 1, "{words}: {printed}");
    }
    let config = folder.write("turboflow.toml", &printed);
    turboflow(["run", "--config", &config, "--check"]).exits(0);
}
