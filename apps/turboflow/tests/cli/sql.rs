// SPDX-License-Identifier: Apache-2.0
//! `turboflow sql`, and the program `turboflow-query` behind it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use turboflow_testing::{Blocked, Need, is_blocked, is_missing, until};

use crate::support::{Folder, Ran, command, finish, office, project, signal, turboflow};

/// Whether the other program was not built, so that tests are skipped.
fn is_not_here() -> bool {
    let beside = Path::new(env!("CARGO_BIN_EXE_turboflow")).with_file_name("turboflow-query");
    is_missing(&[Need::Tool(&beside.display().to_string())])
}

/// The records of the sample in every format that can be read.
fn recorded(folder: &Folder) -> [String; 4] {
    let files = ["a.csv", "a.jsonl", "a.parquet", "a.ipfix"].map(|name| folder.file(name));
    let office = office();
    let outputs = files.iter().flat_map(|file| ["-w", file]);
    let args = ["record", "-q", "-r", &office, "--export-time", "ns"];
    turboflow(args.into_iter().chain(outputs)).exits(0);
    files
}

fn sql(query: &str, files: &[&str]) -> Ran {
    turboflow(["sql", query, "--format", "csv"].iter().chain(files))
}

/// Each question in the language of `show`, and in SQL.
const QUESTIONS: [(&[&str], &str); 12] = [
    (
        &["--group-by", "src_addr", "--select", "bytes", "--top", "5"],
        "select src_addr, sum(bytes) bytes from flows group by 1 order by 2 desc limit 5",
    ),
    (
        &[
            "--group-by",
            "protocol",
            "--by",
            "records",
            "--select",
            "records",
        ],
        "select protocol, count(*) records from flows group by 1 order by 2 desc",
    ),
    (
        &["--group-by", "protocol,tcp_flags", "--select", "packets"],
        "select protocol, tcp_flags, sum(packets) packets from flows group by 1, 2",
    ),
    (
        &[
            "--where",
            "tcp and dst port 443",
            "--group-by",
            "dst_addr",
            "--select",
            "packets",
        ],
        "select dst_addr, sum(packets) packets from flows where protocol = 6 and dst_port = 443 group by 1",
    ),
    (
        &[
            "--where",
            "src net 10.0.0.0/8",
            "--group-by",
            "protocol",
            "--select",
            "bytes",
        ],
        "select protocol, sum(bytes) bytes from flows where in_network(src_addr, '10.0.0.0/8') group by 1",
    ),
    (
        &["--group-by", "src_addr/24/48", "--select", "records"],
        "select network(src_addr, 24, 48) \"src_addr/24/48\", count(*) records from flows group by 1",
    ),
    (
        &[
            "--group-by",
            "dst_port",
            "--select",
            "min(bytes),max(bytes)",
            "--top",
            "0",
        ],
        "select dst_port, min(bytes) \"min(bytes)\", max(bytes) \"max(bytes)\" from flows group by 1",
    ),
    (
        &[
            "--where",
            "bytes > 1000 and duration > 1s",
            "--select",
            "all",
        ],
        "select * from flows where bytes > 1000 and last_ns - first_ns > interval '1 second'",
    ),
    (
        &["--select", "all", "--where", "not (tcp or udp)"],
        "select * from flows where protocol not in (6, 17)",
    ),
    (
        &["--group-by", "end_reason", "--select", "first_ns,last_ns"],
        "select end_reason, min(first_ns) first_ns, max(last_ns) last_ns from flows group by 1",
    ),
    (
        &[
            "--where",
            "src_port == 53 or dst_port == 53",
            "--group-by",
            "src_port",
            "--select",
            "bytes",
        ],
        "select src_port, sum(bytes) bytes from flows where 53 in (src_port, dst_port) group by 1",
    ),
    (
        &["--where", "packets == 0", "--select", "all"],
        "select * from flows where packets = 0",
    ),
];

/// The rows of a CSV in sorted order, after its header.
fn sorted(csv: &str) -> Vec<&str> {
    let mut rows: Vec<&str> = csv.lines().collect();
    rows.get_mut(1..).unwrap_or_default().sort_unstable();
    rows
}

#[test]
fn answers_are_those_of_show_in_every_format() {
    if is_not_here() {
        return;
    }
    let folder = Folder::new();
    for file in recorded(&folder) {
        for (question, query) in QUESTIONS {
            let shown = ["show", &file, "--format", "csv"];
            let shown = turboflow(shown.iter().chain(question)).exits(0).stdout;
            let asked = sql(query, &[&file]).exits(0).stdout;
            assert_eq!(sorted(&asked), sorted(&shown), "{file}: {query}");
        }
    }
}

#[test]
fn tables_and_json_look_like_those_of_show() {
    if is_not_here() {
        return;
    }
    let folder = Folder::new();
    let [.., parquet, _] = recorded(&folder);
    let query = "select protocol, sum(bytes) bytes from flows group by 1 order by 2 desc";
    let group = [
        "show",
        &parquet,
        "--group-by",
        "protocol",
        "--select",
        "bytes",
    ];
    let asked = turboflow(["sql", query, &parquet, "--format", "json"]).exits(0);
    let shown = turboflow(group.iter().chain(&["--format", "json"])).exits(0);
    assert_eq!(asked.stdout, shown.stdout);
    let rows = |ran: Ran| -> Vec<String> {
        let lines = ran.exits(0).stdout;
        let table = lines.lines().take_while(|line| !line.is_empty());
        table.map(str::to_owned).collect()
    };
    let (asked, shown) = (turboflow(["sql", query, &parquet]), turboflow(group));
    assert!(asked.stdout.ends_with("rows\n"), "{}", asked.stdout);
    assert_eq!(rows(asked), rows(shown));
    let most = turboflow(["sql", "select * from flows", &parquet, "--rows", "3"]).exits(0);
    assert!(most.stdout.contains("3 of "), "{}", most.stdout);
    let text = sql(
        "select cast(1 as bigint) - 3 n, true b, null x, 1.5 f, to_timestamp(0) t, 'a,b' c",
        &[&parquet],
    );
    assert_eq!(
        text.exits(0).stdout,
        "n,b,x,f,t,c\n-2,true,,1.5,1970-01-01T00:00:00Z,\"a,b\"\n"
    );
}

#[test]
fn nothing_but_one_query_is_taken() {
    if is_not_here() {
        return;
    }
    let folder = Folder::new();
    let file = folder.write("a.csv", "src_addr,bytes\n10.0.0.1,5\n");
    let out = folder.file("out");
    for hostile in [
        "",
        ";",
        "select 1; select 2",
        "drop table flows",
        "create table t as select * from flows",
        "create view v as select 1",
        "create external table t stored as csv location '/etc/passwd'",
        "create function f() returns int return 1",
        "insert into flows select * from flows",
        "update flows set bytes = 0",
        "delete from flows",
        "truncate table flows",
        &format!("copy flows to '{out}' stored as csv"),
        &format!("copy (select 1) to '{out}'"),
        &format!("explain copy flows to '{out}'"),
        &format!("select * into outfile '{out}' from flows"),
        "select * into t from flows",
        "set datafusion.execution.batch_size = 1",
        "reset datafusion.execution.batch_size",
        "set datafusion.catalog.location = '/'",
        "show all",
        "begin",
        "prepare p as select 1",
        "execute p",
        "with w as (insert into flows select * from flows) select * from w",
        "explain analyze drop table flows",
    ] {
        let refused = sql(hostile, &[&file]).exits(2);
        assert!(refused.stdout.is_empty(), "{hostile}");
        assert_eq!(
            refused.stderr.lines().count(),
            1,
            "{hostile}: {}",
            refused.stderr
        );
    }
    // The name of a table never opens a file.
    for query in [
        "select * from '/etc/passwd'",
        "select * from \"a.csv\"",
        "select * from read_csv('/etc/passwd')",
        "select * from parquet_metadata('a')",
        "select * from information_schema.tables",
    ] {
        sql(query, &[&file]).exits(2);
    }
    assert_eq!(folder.names(), ["a.csv"]);
    assert_eq!(fs::read_to_string(&file).unwrap().len(), 26);
    let depth = format!("select {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    sql(&depth, &[&file]).exits(2).says(&["recursion"]);
    let long = format!("select 1{} n", " + 1".repeat(2_000));
    assert_eq!(sql(&long, &[&file]).exits(0).stdout, "n\n2001\n");
}

#[test]
fn errors_name_the_place_and_what_to_do() {
    if is_not_here() {
        return;
    }
    let folder = Folder::new();
    let [csv, ..] = recorded(&folder);
    let refused = |query: &str, words: &[&str]| {
        sql(query, &[&csv]).exits(2).says(words);
    };
    refused(
        "select srcaddr from flows",
        &["column 8", "no column srcaddr", "near: src_addr"],
    );
    refused(
        "select zzzzzzzzzzzzz from flows",
        &["no column zzzzzzzzzzzzz", "describe flows"],
    );
    refused("select sum( from flows", &["line 1, column"]);
    refused("select sum(src_addr, 3) from flows", &["sum"]);
    refused("select * from other", &["other"]);
    refused(
        "select * from flows where in_network(src_addr, '10/8')",
        &["\"10/8\" is not a network", "10.0.0.0/8"],
    );
    sql("select 1", &["missing.csv"])
        .exits(2)
        .says(&["missing.csv does not exist"]);
    let empty = folder.write("empty.csv", "");
    sql("select 1", &[&empty])
        .exits(2)
        .says(&["empty.csv", "is empty"]);
    turboflow(["sql", "select 1"]).exits(2);
    let far = ["sql", "select 1", &csv, "--table", "a b=x"];
    turboflow(far).exits(2).says(&["far=far.parquet"]);
    let small = ["--memory", "1MiB"];
    let group =
        "select array_agg(f.bytes), count(*) from flows f, flows g group by f.first_ns, g.first_ns";
    turboflow(["sql", group, &csv].iter().chain(&small))
        .exits(2)
        .says(&["--memory", "--spill"]);
    let header = folder.write("header.csv", "src_addr,bytes\n");
    let count = sql("select count(*) n, sum(bytes) b from flows", &[&header]).exits(0);
    assert_eq!(count.stdout, "n,b\n0,\n");
}

#[test]
fn several_tables_are_joined_and_pipes_are_read_once() {
    if is_not_here() {
        return;
    }
    let folder = Folder::new();
    let near = folder.write("near.csv", "src_addr,bytes\n10.0.0.1,5\n10.0.0.2,6\n");
    let far = folder.write("far.csv", "src_addr,bytes\n10.0.0.1,4\n");
    let query = "select n.src_addr, n.bytes - f.bytes lost from near n left join far f \
                 using (src_addr) order by 1";
    let [near, far] = [("near", near), ("far", far)].map(|(name, file)| format!("{name}={file}"));
    let ran = [
        "sql", query, "--table", &near, "--table", &far, "--format", "csv",
    ];
    assert_eq!(
        turboflow(ran).exits(0).stdout,
        "src_addr,lost\n10.0.0.1,1\n10.0.0.2,\n"
    );

    let pipe = |query: &str| {
        let mut command = command(["sql", query, "-", "--format", "csv"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"src_addr,bytes\n10.0.0.1,5\n").unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(pipe("select bytes from flows").1, "bytes\n5\n");
    let (code, _, said) = pipe("select * from flows a, flows b");
    assert_eq!(code, Some(2));
    assert!(said.contains("can be read once"), "{said}");
}

#[test]
fn a_cut_file_is_told_and_ctrl_c_ends() {
    if is_not_here() {
        return;
    }
    let folder = Folder::new();
    let [.., ipfix] = recorded(&folder);
    let mut bytes = fs::read(&ipfix).unwrap();
    bytes.truncate(bytes.len() - 3);
    let cut = folder.write("cut.ipfix", bytes);
    sql("select count(*) from flows", &[&cut])
        .exits(1)
        .says(&["cut.ipfix", "the flow records before that were read"]);

    let mut child = command(["sql", "select * from flows", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("it waits for records", || {
        is_blocked(child.id(), Blocked::Reading(0))
    });
    // Keep standard input open: `wait` would close it, and that would end the query.
    let _open = child.stdin.take();
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// `turboflow` alone, in a folder without `turboflow-query`.
#[test]
fn without_the_other_program_one_line_says_what_to_do() {
    let folder = Folder::new();
    let alone = PathBuf::from(folder.file("turboflow"));
    fs::hard_link(env!("CARGO_BIN_EXE_turboflow"), &alone)
        .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_turboflow"), &alone).map(|_| ()))
        .unwrap();
    let mut program = Command::new(&alone);
    program
        .args(["sql", "select 1", "a.csv"])
        .env("PATH", "/nonexistent");
    let refused = finish(&mut program).exits(2);
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    refused.says(&["turboflow-query", "make query"]);
    let help = finish(Command::new(&alone).args(["sql", "--help"])).exits(0);
    assert!(help.stdout.contains("in_network"), "{}", help.stdout);
}

/// The commands that documents tell users to type.
#[test]
fn the_queries_of_the_document_are_answered() {
    if is_not_here() {
        return;
    }
    let folder = Folder::new();
    let [.., parquet, _] = recorded(&folder);
    for name in ["flows", "near", "far", "today", "yesterday"] {
        fs::copy(&parquet, folder.file(&format!("{name}.parquet"))).unwrap();
    }
    let programs = Path::new(env!("CARGO_BIN_EXE_turboflow")).parent().unwrap();
    let document = fs::read_to_string(project("docs/sql.md")).unwrap();
    let blocks = document.split("```sh\n").skip(1);
    let blocks: Vec<&str> = blocks
        .filter_map(|block| block.split("```").next())
        .filter(|block| block.starts_with("turboflow sql"))
        .collect();
    assert_eq!(blocks.len(), 5);
    for block in blocks {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", block]).current_dir(folder.path());
        let ran = finish(shell.env("PATH", programs)).exits(0);
        assert!(ran.stdout.contains("row"), "{block}: {}", ran.stdout);
    }
}
