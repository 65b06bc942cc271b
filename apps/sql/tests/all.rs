// SPDX-License-Identifier: Apache-2.0
//! Tests the program on its own. Its answers are tested through `turboflow sql`, in
//! `apps/turboflow/tests/cli/sql.rs`.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use std::process::{Command, Output};

fn query(args: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_turboflow-query"));
    program.args(args).output().unwrap()
}

#[test]
fn it_answers_and_says_which_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    std::fs::write(&file, "src_addr,bytes\n10.0.0.1,5\n10.0.0.1,6\n").unwrap();
    let file = file.display().to_string();
    let sums = "select src_addr, sum(bytes) b from flows group by 1";
    let answer = query(&["sql", sums, &file, "--format", "csv"]);
    assert_eq!(
        String::from_utf8(answer.stdout).unwrap(),
        "src_addr,b\n10.0.0.1,11\n"
    );
    let version = query(&["--version"]);
    let expected = format!("turboflow-query {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(version.stdout).unwrap(), expected);
    assert_eq!(query(&[]).status.code(), Some(2));
}

/// Runs a query on a file with one record per name. Returns the exit code, the answer and standard
/// error.
fn asked(format: &str, query: &str) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let table = |name: &str, packets: u64, bytes: u64| {
        let file = folder.path().join(format!("{name}.csv"));
        let text = format!(
            "src_addr,packets,bytes,first_ns,last_ns\n\
             10.0.0.1,{packets},{bytes},1700000000000000000,1700000001500000000\n"
        );
        std::fs::write(&file, text).unwrap();
        format!("{name}={}", file.display())
    };
    let (near, far) = (table("n", 1, 5), table("f", 2, 6));
    let args = [
        "sql", query, "--format", format, "--table", &near, "--table", &far,
    ];
    let output = self::query(&args);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn answered(format: &str, query: &str) -> String {
    let (code, answer, said) = asked(format, query);
    assert_eq!(code, 0, "{query}: {said}");
    answer
}

const JOINED: &str = "from n join f using (src_addr)";

#[test]
fn differences_may_be_below_zero() {
    let lost = format!(
        "select n.bytes - f.bytes lost, n.bytes - 1000 less, n.last_ns - n.first_ns lasts {JOINED}"
    );
    assert_eq!(
        answered("csv", &lost),
        "lost,less,lasts\n-1,-995,1500000000\n"
    );
    assert_eq!(
        answered("json", &lost),
        "{\"lost\":-1,\"less\":-995,\"lasts\":1500000000}\n"
    );
    let table = answered("table", &lost);
    for shown in [" -1 ", " -995 ", "1.5 s"] {
        assert!(format!(" {table} ").contains(shown), "{shown}: {table}");
    }
    let more = format!("select count(*) c {JOINED} where n.packets - f.packets > 0");
    assert_eq!(answered("csv", &more), "c\n0\n");
    let groups = format!(
        "select n.bytes - f.bytes, sum(n.packets - f.packets) s {JOINED}
         group by n.bytes - f.bytes order by n.bytes - f.bytes"
    );
    assert_eq!(answered("csv", &groups), "n.bytes - f.bytes,s\n-1,-1\n");
    let below = "with d as (select packets - 3 x from n union all select packets from f)
                 select x - 1 y from d where x in (select packets - 3 from n)";
    assert_eq!(answered("csv", below), "y\n-3\n");
}

#[test]
fn no_value_is_lost_where_it_is_written() {
    let lists = "select [-1, null, 3] l, [packets, null] m from n";
    assert_eq!(answered("csv", lists), "l,m\n[-1;null;3],[1;null]\n");
    assert_eq!(
        answered("json", lists),
        "{\"l\":[-1,null,3],\"m\":[1,null]}\n"
    );
    let times = "select date '2300-01-02' d, arrow_cast(32503680000, 'Timestamp(Second, None)') t,
                 to_timestamp('1960-01-02T03:04:05') o, to_timestamp_nanos(-5) o_ns,
                 cast(null as date) e from n";
    assert_eq!(
        answered("csv", times),
        "d,t,o,o_ns,e\n2300-01-02,3000-01-01T00:00:00Z,1960-01-02T03:04:05Z,-5,\n"
    );
}

#[test]
fn queries_without_an_end_are_refused() {
    let refused = |query: &str, word: &str| {
        let (code, answer, said) = asked("csv", query);
        assert_eq!((code, answer.as_str()), (2, ""), "{said}");
        assert!(said.contains(word) && said.lines().count() == 1, "{said}");
    };
    let recursive = "with recursive r as (select packets p from n union all
                     select p + 1 from r, n where p < 9) select * from r";
    refused(recursive, "with recursive");
    let ports = " or packets=1".repeat(9_000);
    refused(
        &format!("select 1 from n where bytes=1{ports}"),
        "operators",
    );
    let sums = "+packets".repeat(12_000);
    refused(&format!("select 1 from n where 1<bytes{sums}"), "operators");
    // A deep tree that is evaluated while the file is read.
    let sums = "+packets".repeat(500);
    let long = format!("select count(*) c from n where 505=bytes{sums}");
    assert_eq!(answered("csv", &long), "c\n1\n");
    let values: Vec<String> = (0..20_000).map(|value| value.to_string()).collect();
    let many = format!("select bytes from n where bytes in ({})", values.join(","));
    assert_eq!(answered("csv", &many), "bytes\n5\n");
}
