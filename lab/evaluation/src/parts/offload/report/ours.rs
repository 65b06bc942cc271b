// SPDX-License-Identifier: Apache-2.0
//! Our learner on the authors' scenarios.

use super::super::host::{FAST, FAST_NO_NDPI, Outcome};
use super::super::setup_name;
use super::super::sheets::{self, Mode, Sheets};
use super::percent;
use crate::facts::Facts;
use crate::report::axis::short;
use crate::report::{Section, number};

pub(super) fn model_card(sheets: &Sheets, facts: &Facts, section: &mut Section) {
    let facts = facts.with("is", "model card");
    section.say(
        "### Our learner over a model card\n\nThe learner of `--engine offload` over the model card \
         of `engines/offload`, with the traffic of the sheets at 1:1000: a thousandth of the flows, \
         packets, rows and rates, and the full times of a flow. A tenth of the flows is replaced \
         every second; the first 10 s are learning. With nDPI the tenth packet decides, without it \
         the first. Load and loss are what the paper's host would have with this share of packets. \
         Each cell: packets at the host / load of each core / packets lost, in percent.",
    );
    let flows = facts.numbers("flows");
    let names: Vec<String> = flows.iter().map(|flows| short(*flows)).collect();
    let mut header = vec!["runs"];
    header.extend(names.iter().map(String::as_str));
    let mut rows = Vec::new();
    for setup in [FAST, FAST_NO_NDPI] {
        let of_setup = facts.with("setup", &setup_name(setup));
        for rate in of_setup.numbers("rules_per_s") {
            let of_rate = of_setup.at("rules_per_s", rate);
            let mut row = vec![format!(
                "{}: ours, {} rules/s",
                kind(setup.ndpi),
                short(rate)
            )];
            row.extend(of_rate.0.iter().map(|fact| {
                let share = number(fact.get("host_share") * 100.0, 2);
                let (cpu, loss) = (percent(fact.get("cpu")), percent(fact.get("loss")));
                format!("{share} / {cpu} / {loss}")
            }));
            rows.push(row);
        }
        let mut row = vec![format!("{}: their sheet", kind(setup.ndpi))];
        row.extend(sheets.flows(setup).into_iter().filter_map(|name| {
            let is_ours = flows.contains(&sheets::count(&name));
            let run = Outcome::of_run(sheets, setup, Mode::PassiveOffload, &name)?;
            let cpu = percent(run.cpu);
            let share = super::super::host::late_share(sheets, setup, &name)
                .filter(|_| setup.ndpi && run.cpu > 0.01)
                .map_or_else(|| "?".to_owned(), percent);
            is_ours.then(|| format!("{share} / {cpu} / {}", percent(run.loss)))
        }));
        rows.push(row);
    }
    section.table(&header, &rows);
    let (refusing, others): (Vec<_>, Vec<_>) =
        (facts.0.iter()).partition(|fact| fact.get("refused") > 0.0);
    let late: f64 = others.iter().map(|fact| fact.get("late_packets")).sum();
    section.say(format!(
        "In {} of the {} runs the card refused rows; a flow without one asks again with its next \
         packet, so that the card spends its rate on old flows, too. In the other runs, {} packets \
         reached the host more than 10 ms after the packet that decided about their flow.",
        refusing.len(),
        facts.0.len(),
        short(late)
    ));
}

const fn kind(ndpi: bool) -> &'static str {
    if ndpi { "nDPI" } else { "no nDPI" }
}
