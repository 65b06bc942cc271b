// SPDX-License-Identifier: Apache-2.0
//! Options that affect only speed and memory do not change the records.

use crate::support::{Folder, office, project, rows, turboflow};

fn records(args: &[&str]) -> Vec<String> {
    let all = ["record", "-q", "-w", "-", "--format", "csv"]
        .iter()
        .chain(args);
    rows(&turboflow(all).exits(0).stdout)
}

#[test]
fn threads_seed_and_table_size_change_no_record() {
    let folder = Folder::new();
    let definition = folder.write(
        "d.toml",
        "[key]\nfields = [\"source_address\", \"vlan\"]\n\
         [[feature]]\nname = \"packets\"\nop = \"count\"\n\
         [[feature]]\nname = \"jitter\"\nop = \"gap_variance\"\n\
         [[feature]]\nname = \"sizes\"\nop = \"list\"\nof = \"ip_length\"\nk = 5\n",
    );
    let (office, links) = (office(), project("samples/two-links.pcapng"));
    let setups: [&[&str]; 4] = [
        &["-r", &office],
        &[
            "-r",
            &office,
            "--idle-timeout",
            "500ms",
            "--linger",
            "0",
            "--biflow",
        ],
        &["-r", &links, "--decapsulate", "--reassemble-flows"],
        &[
            "-r",
            &office,
            "--definition",
            &definition,
            "--idle-timeout",
            "1s",
        ],
    ];
    for setup in setups {
        let expected = records(&[setup, &["--seed", "1"]].concat());
        assert!(expected.len() > 20);
        for (threads, seed, slots) in [
            ("1", "99", "1"),
            ("2", "1", "7"),
            ("3", "5", "1024"),
            ("2", "77", "100000"),
        ] {
            let way = [
                "--threads",
                threads,
                "--seed",
                seed,
                "--microflow-slots",
                slots,
            ];
            let found = records(&[setup, &way].concat());
            assert!(found == expected, "{setup:?} differs with {way:?}");
        }
    }
}

#[test]
fn outputs_are_reproducible() {
    let office = office();
    let run = || {
        let args = [
            "record", "-q", "-r", &office, "-w", "-", "--format", "csv", "--seed", "42",
        ];
        turboflow(args).exits(0).stdout
    };
    assert_eq!(run(), run());
}

#[test]
fn totals_of_a_key_do_not_depend_on_timeouts() {
    let office = office();
    let totals = |args: &[&str]| {
        let mut sums = std::collections::BTreeMap::new();
        for row in records(&[&["-r", &office], args].concat()) {
            let fields: Vec<&str> = row.split(',').collect();
            let sum: &mut (u64, u64) = sums.entry(fields[..5].join(",")).or_default();
            sum.0 += fields[5].parse::<u64>().unwrap();
            sum.1 += fields[6].parse::<u64>().unwrap();
        }
        sums
    };
    let whole = totals(&[
        "--idle-timeout",
        "none",
        "--active-timeout",
        "none",
        "--linger",
        "none",
    ]);
    assert_eq!(whole.len(), 742);
    assert_eq!(totals(&["--idle-timeout", "10ms"]), whole);
    assert_eq!(totals(&["--active-timeout", "1ms", "--linger", "0"]), whole);
    assert_eq!(
        totals(&["--max-flows", "10", "--microflow-slots", "3"]),
        whole
    );
}
