// SPDX-License-Identifier: Apache-2.0
//! Where the paper disagrees with its authors' sheets, or with itself.

/// A statement of the paper, and in a sentence what the sheets and their commands say instead.
pub(super) struct Disagreement {
    /// The subject, by which a reader finds the statement.
    pub(super) about: &'static str,
    pub(super) sentence: &'static str,
}

/// All disagreements that were found. Tests recompute from the sheets what they can.
pub(super) const DISAGREEMENTS: [Disagreement; 11] = [
    Disagreement {
        about: "rate of Table I",
        sentence: "Table I is headed \"10 Mpps (80 Gbps)\", but all of its 40 cells are of the \
                   runs with 89 M packets/s of 60 bytes, with \"<1 %\" printed as 1 %; at 10 M \
                   packets/s nothing was lost once flows were learned",
    },
    Disagreement {
        about: "offload at 100K flows",
        sentence: "with offload and 100K flows, Table I prints a load of 23 % with nDPI and 17 % \
                   without, where every version of the sheet has 17 % and 23 %; the printed order \
                   is the plausible one, because nDPI cannot make the host cheaper, so both are \
                   quoted",
    },
    Disagreement {
        about: "inline mode without nDPI",
        sentence: "Table I is titled \"passive mode\" and Figure 5 \"inline mode at 10 Mpps\", \
                   but no bridge was run without nDPI, so what inspection costs in inline mode is \
                   not known",
    },
    Disagreement {
        about: "5M flows",
        sentence: "the text says that offload reduces the loss to zero \"for up to 5 million \
                   active flows\", but no version has a run with 5M; it is 0 at 1M and 46 % at \
                   10M",
    },
    Disagreement {
        about: "learning rate",
        sentence: "the card learns 3.5 M flows/s in section III and 1 M/s a stream or 3 M/s in \
                   all in section IV, with less than 10 us a rule, but the sheet saw 0.8 and then \
                   1 M flows/s on 16 cores, which is all that was offered, and 90 to 100 K on one \
                   core with and without offload, which is the host's limit",
    },
    Disagreement {
        about: "25 % of Figure 4",
        sentence: "Figure 4 says that offload reduces the loss at 10M flows \"by 25%\": from 72 \
                   to 46 %, which is 26 points, or 36 % of the loss",
    },
    Disagreement {
        about: "spreading over cores",
        sentence: "the text says that packets are spread by the 5-tuple, but the authors' \
                   commands spread by two addresses without offload (`Hash2TupleSorted`) and by \
                   the 5-tuple with it (`Hash5TupleSorted`), so the two kinds of run do not \
                   differ in offload alone",
    },
    Disagreement {
        about: "what the card decodes",
        sentence: "the text says that the card decodes every frame, but with offload the authors' \
                   filter assigns IPv4 with TCP or UDP alone, and all else (IPv6, ARP, ICMP) goes \
                   to no stream and no port, which drops it in their inline configuration",
    },
    Disagreement {
        about: "room for more traffic",
        sentence: "section V.B sees room for more traffic in the load \"in Figure 4\" and means \
                   Figure 3, because the cores of Figure 4 are full at 10M flows",
    },
    Disagreement {
        about: "name of the card",
        sentence: "the card is an NT200A2 in section II, an NT200AS in section III and an \
                   NT200A02 in section IV and in the authors' commands, which is its name",
    },
    Disagreement {
        about: "memory of a flow",
        sentence: "the text says that a flow takes \"approximately 1 kilobyte\" with nDPI, which \
                   is nDPI's part: the process takes 1.7 KB a flow (12 GB at 7M, 76 GB at 45M, \
                   17.1 GB at 10M flows)",
    },
];

#[cfg(test)]
mod tests {
    use crate::parts::offload::host::{EIGHT_CORES, FAST, FAST_NO_NDPI, LONG, ONE_CORE, Outcome};
    use crate::parts::offload::sheets::{Mode, Paper, Setup, Sheets};

    const MODES: [(bool, Mode); 4] = [
        (true, Mode::Passive),
        (false, Mode::Passive),
        (true, Mode::PassiveOffload),
        (false, Mode::PassiveOffload),
    ];

    fn run(sheets: &Sheets, setup: Setup, mode: Mode, flows: &str) -> Outcome {
        Outcome::of_run(sheets, setup, mode, flows).unwrap()
    }

    #[test]
    fn all_cells_of_table_1_are_of_the_fast_runs_and_two_are_swapped() {
        let (sheets, paper) = (Sheets::in_tree(), Paper::in_tree());
        let (mut same, mut swapped) = (0, Vec::new());
        for (ndpi, mode) in MODES {
            let setup = if ndpi { FAST } else { FAST_NO_NDPI };
            for flows in &paper.table_1.flows {
                let offload = mode == Mode::PassiveOffload;
                let printed = Outcome::printed(&paper, ndpi, offload, flows).unwrap();
                let sheet = run(&sheets, setup, mode, flows);
                assert_eq!(printed.loss, sheet.loss, "{ndpi} {mode:?} {flows}");
                if printed.cpu == sheet.cpu {
                    same += 2;
                } else {
                    swapped.push((flows.clone(), offload, printed.cpu, sheet.cpu));
                    same += 1;
                }
            }
        }
        assert_eq!(same, 38);
        let expected = [
            ("100K".to_owned(), true, 0.23, 0.17),
            ("100K".to_owned(), true, 0.17, 0.23),
        ];
        assert_eq!(swapped, expected);
    }

    #[test]
    fn nothing_is_lost_at_10_million_packets_once_flows_are_learned() {
        let sheets = Sheets::in_tree();
        for mode in Mode::ALL {
            for flows in ["1K", "10K", "100K", "1M", "10M"] {
                assert_eq!(run(&sheets, LONG, mode, flows).loss, 0.0);
            }
        }
    }

    #[test]
    fn what_was_not_run_is_not_in_the_sheets() {
        let sheets = Sheets::in_tree();
        for block in &sheets.block {
            assert!(!block.flows.contains(&"5M".to_owned()));
            let has_bridge = block.rows(Mode::Bridge).is_some();
            assert!(block.ndpi || !has_bridge, "{}", block.columns);
        }
    }

    #[test]
    fn offload_at_10m_flows_saves_36_percent_of_the_loss() {
        let sheets = Sheets::in_tree();
        let loss = |mode| run(&sheets, FAST, mode, "10M").loss;
        let (without, with) = (loss(Mode::Passive), loss(Mode::PassiveOffload));
        assert_eq!((without, with), (0.72, 0.46));
        assert_eq!((100.0 * (without - with) / without).round(), 36.0);
        assert_eq!(run(&sheets, FAST, Mode::Passive, "10M").cpu, 1.0);
        assert_eq!(run(&sheets, FAST, Mode::PassiveOffload, "1M").loss, 0.0);
    }

    #[test]
    fn a_flow_takes_1_7_kilobytes_and_the_host_learns_what_is_offered() {
        let sheets = Sheets::in_tree();
        let text = |setup, row, flows| sheets.text(setup, Mode::Passive, row, flows);
        let memory = |setup, flows| text(setup, |rows| &rows.memory, flows);
        assert_eq!(memory(ONE_CORE, "10M"), "12.2GB/12GB (7Mf)");
        assert_eq!(memory(EIGHT_CORES, "100M"), "77GB/76GB");
        assert_eq!(
            text(EIGHT_CORES, |rows| &rows.note, "100M"),
            "Starved at 45Mf"
        );
        assert_eq!(memory(LONG, "10M"), "18.3GB/17.1GB");
        for (gigabytes, million_flows) in [(12.0, 7.0), (76.0, 45.0), (17.1, 10.0)] {
            let kilobytes: f64 = gigabytes / million_flows;
            assert!((1.65..1.75).contains(&kilobytes), "{kilobytes}");
        }
        let learning = |setup, mode| sheets.text(setup, mode, |rows| &rows.learning, "10M");
        let on_16 = "800 Kfps -> 1Mfps (total)";
        assert_eq!(learning(LONG, Mode::Passive), on_16);
        assert_eq!(learning(LONG, Mode::PassiveOffload), on_16);
        assert!(learning(ONE_CORE, Mode::PassiveOffload).starts_with("95 Kfps"));
    }
}
