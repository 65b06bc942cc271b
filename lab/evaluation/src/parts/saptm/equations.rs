// SPDX-License-Identifier: Apache-2.0
//! Equations 1 to 4, corrected, and Tables 1 and 3, each compared with our numbers.

use turboflow_engine_rtl::line_clocks;

use super::{PART, STAGES};
use crate::facts::Raw;
use crate::report::{Section, number};
use crate::saptm::equations::TABLE_3;

/// An equation: its number, the printed form, and the corrected one.
const EQUATIONS: [[&str; 4]; 4] = [
    [
        "1",
        "max(L_lfc, d L_lft) + L_cp + max(L_wfc, L_wfr, L_uwl, L_wft, L_dq)",
        "the same with L_uwr",
        "1: every clock takes a key",
    ],
    [
        "2",
        "size of a key x L_s1 / f",
        "size of a key x f / L_s1",
        "size of a key x f",
    ],
    [
        "3",
        "L_hash + L_lfc + max(L_ufr, L_wfc, L_wfr, L_dq)",
        "the same without L_hash, which Equation 4 has",
        "13, for any place",
    ],
    [
        "4",
        "L_hash + L_s1 + N L_sn / 2",
        "L_hash + L_s1 + (N - 1) L_sn / 2",
        "10 + 13 N, for any place",
    ],
];

/// Parameters of Table 1, their clocks in Table 3, and the counterpart in our line.
const PARAMETERS: [[&str; 4]; 9] = [
    ["L_ha", "the hash", "not printed", "4"],
    [
        "L_lfc, L_wfc",
        "looking up and writing the flow-key cache",
        "1, 1",
        "no cache: the 16 tags of a key's buckets are searched, s0 to s4",
    ],
    [
        "L_lft, L_uft, L_wft",
        "looking up, updating and writing the tracking table",
        "1, 1 (as L_ufft), 1",
        "4: a table without keys says the stage of both buckets, in a line of several stages",
    ],
    [
        "L_cp",
        "the comparator",
        "1",
        "1, s5: the op just ahead is known",
    ],
    ["L_uwr", "the workload registers", "2", "none"],
    [
        "L_ufr",
        "updating a counter",
        "2",
        "6, s7 to s12, with all ten features",
    ],
    [
        "L_wfr",
        "writing key and counter",
        "1",
        "in these 6; the tag in s6",
    ],
    [
        "L_dq",
        "writing the queue to the next stage",
        "1",
        "no queue: a place of the line",
    ],
    ["L_ufc", "in Table 3 alone", "1", ""],
];

pub(super) fn say(raw: &Raw, section: &mut Section) {
    section.say(
        "### Equations 1 to 4, Tables 1 and 3\n\n*f* is the clock, *N* the number of stages, \
         *L_s1* the clocks that a new key takes in stage 1, *L_sn* those of a later stage.",
    );
    let names = ["equation", "as printed", "corrected", "ours"];
    let text = |row: &[&str; 4]| row.map(str::to_owned).to_vec();
    section.table(&names, &EQUATIONS.iter().map(text).collect::<Vec<_>>());
    let names = ["parameter", "what", "clocks in Table 3", "ours"];
    section.table(&names, &PARAMETERS.iter().map(text).collect::<Vec<_>>());
    let facts = raw.part(PART.name).with("is", "clocks");
    let rows = STAGES.map(|stages| {
        let here = facts.at("stages", stages as f64);
        let of = |key, digits| number(here.first(key).unwrap_or(f64::NAN), digits);
        vec![
            stages.to_string(),
            of("new_key_clocks", 0),
            number(TABLE_3.later_stage(), 0),
            of("mean_clocks_without_hash", 1),
            "1".to_owned(),
            line_clocks(stages).to_string(),
        ]
    });
    let names = [
        "stages",
        "clocks of a new key",
        "in a later stage",
        "mean clocks of a key, without the hash",
        "ours: clocks of a key",
        "from head to end of the line",
    ];
    section.table(&names, &rows);
    section.say(
        "The paper is faster from end to end, and ours takes a key in every clock. The latency of \
         a line is microseconds at most, and a record stays in it for up to a second.",
    );
}

#[cfg(test)]
mod tests {
    use turboflow_engine_rtl::{HASH_CLOCKS, SPREAD_CLOCKS, STAGE_CLOCKS};

    use super::*;

    /// The numbers that the tables give for our line equal those of the line itself.
    #[test]
    fn ours_has_the_clocks_of_the_line() {
        let equation = |number: &str| EQUATIONS.iter().find(|row| row[0] == number).unwrap()[3];
        let per_stage = format!("{STAGE_CLOCKS}, for any place");
        assert_eq!(equation("3"), per_stage);
        let head = line_clocks(8) - 8 * STAGE_CLOCKS;
        let whole = format!("{head} + {STAGE_CLOCKS} N, for any place");
        assert_eq!(equation("4"), whole);
        let ours = |name: &str| PARAMETERS.iter().find(|row| row[0] == name).unwrap()[3];
        assert_eq!(ours("L_ha"), HASH_CLOCKS.to_string());
        assert!(ours("L_lft, L_uft, L_wft").starts_with(&format!("{SPREAD_CLOCKS}: ")));
    }
}
