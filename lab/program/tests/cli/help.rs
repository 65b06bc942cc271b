// SPDX-License-Identifier: Apache-2.0
//! Help texts name every command and fit a terminal.

use crate::support::lab;

#[test]
fn help_names_the_commands_and_fits_a_terminal() {
    for (args, words) in [
        (&["--help"][..], &["bench", "evaluation", "Exit codes:"][..]),
        (
            &["bench", "--help"],
            &["Benchmarks:", "Examples:", "turboflow-lab bench"],
        ),
        (
            &["evaluation", "--help"],
            &["run", "measure", "turboflow-lab evaluation"],
        ),
        (
            &["help", "evaluation", "run"],
            &["--quick", "--parts", "--report"],
        ),
    ] {
        let help = lab(args).exits(0).stdout;
        for word in words {
            assert!(help.contains(word), "{word:?} is missing in {help}");
        }
        let wide = help.lines().find(|line| line.chars().count() > 100);
        assert_eq!(wide, None, "{args:?} is too wide");
    }
    let none: [&str; 0] = [];
    lab(none).exits(2);
    let version = lab(["--version"]).exits(0).stdout;
    let expected = format!("turboflow-lab {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(version, expected);
}
