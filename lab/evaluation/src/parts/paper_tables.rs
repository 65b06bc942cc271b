// SPDX-License-Identifier: Apache-2.0
//! Tables 5, 12 and 13, which follow from the paper's own inputs, cell by cell, as `turboflow-plan`
//! computes them.

use turboflow_plan::paper::{self, Agreement, Cell};

use super::{FactSink, Part};
use crate::facts::{Fact, Facts};
use crate::report::{Section, number};

pub(super) const TABLE_5: Part = Part {
    name: "table5",
    title: "Table 5: the chance of an eviction",
    measure: |_, give| measure_5(give),
    report: |raw, section| {
        section.say(
            "Equation 1, with *a* active flows and tables of 1 to 5 times as many slots. The paper \
             does not state *a*. Its first cell implies 8, 9 or 10; 10 is used here. The paper \
             truncates its digits and does not round them.",
        );
        let facts = raw.part("table5");
        table(&facts.with("is", "cell"), section);
        let simulated = facts.with("is", "simulated");
        let rows: Vec<Vec<String>> = simulated.0.iter().map(simulated_row).collect();
        section.say(
            "By simulation: 10,000 flows that send in turn. This is the worst order, because every \
             packet whose flow shares a slot finds it taken. In any other order packets of one \
             flow follow each other, and fewer evict.",
        );
        section.table(
            &["slots", "Equation 1", "packets that evict, simulated"],
            &rows,
        );
    },
    is_computed: false,
};

pub(super) const TABLE_12: Part = Part {
    name: "table12",
    title: "Table 12: cost of monitoring",
    measure: |_, give| cells("table12", paper::table_12(), give),
    report: |raw, section| {
        section.say(
            "Equation 3 with the inputs of section 6.6, per Tb/s: what flow records add to the cost \
             of switches. The printed prices follow from a server of 3600 dollars, not from the \
             \"approximately $3500\" of the text.",
        );
        table(&raw.part("table12"), section);
    },
    is_computed: false,
};

pub(super) const TABLE_13: Part = Part {
    name: "table13",
    title: "Table 13: cost beside server-based systems",
    measure: |_, give| cells("table13", paper::table_13(), give),
    report: |raw, section| {
        section.say(
            "The inputs are those of Table 12. The other systems update a key-value store in a \
             server for every flow.",
        );
        table(&raw.part("table13"), section);
    },
    is_computed: false,
};

/// Number of flows in the simulation beside Table 5; many flows keep the variance low.
const FLOWS: u64 = 10_000;

fn measure_5(give: FactSink<'_>) -> anyhow::Result<()> {
    use turboflow_merge::KeyHasher;
    use turboflow_plan::{Observed, Simulation, SimulationConfig, eviction_probability};
    use turboflow_record::Family;
    use turboflow_workload::traffic::five_tuple;

    const PACKETS: u64 = 2_000_000;
    cells("table5", paper::table_5(), give)?;
    let mut simulation = Simulation::new(&SimulationConfig {
        table_slots: (1..=5).map(|times| times * FLOWS as u32).collect(),
        ..SimulationConfig::default()
    })?;
    let hasher = KeyHasher::new(1);
    let packets: Vec<Observed> = (0..PACKETS)
        .map(|packet| {
            let [w0, w1, ..] = *five_tuple(packet % FLOWS, Family::V4, 6).raw_words();
            Observed {
                hash: hasher.hash(&[w0, w1]),
                timestamp_ns: packet * 1_000,
                wire_bytes: 64,
                is_ipv6: false,
            }
        })
        .collect();
    simulation.observe(&packets);
    for table in simulation.finish().tables {
        let slots = u64::from(table.slots);
        let fact = Fact::new("table5")
            .of("is", "simulated")
            .value("slots", slots as f64)
            .value("equation", eviction_probability(slots, FLOWS as f64))
            .value("evicting_share", table.evictions as f64 / PACKETS as f64);
        give(fact);
    }
    Ok(())
}

fn simulated_row(fact: &Fact) -> Vec<String> {
    vec![
        number(fact.get("slots"), 0),
        number(fact.get("equation"), 4),
        number(fact.get("evicting_share"), 4),
    ]
}

/// The name of a cell's agreement in facts.
const fn agreement(agreement: Option<Agreement>) -> &'static str {
    match agreement {
        Some(Agreement::ToTheDigit) => "digit",
        Some(Agreement::WithinRounding) => "rounding",
        Some(Agreement::Deviates) => "no",
        None => "input",
    }
}

/// Passes the cells of a table on as facts.
pub(super) fn cells(part: &str, cells: Vec<Cell>, give: FactSink<'_>) -> anyhow::Result<()> {
    for cell in cells {
        let reason = cell.reason();
        let agrees = agreement(cell.agreement());
        let mut fact = Fact::new(part)
            .of("is", "cell")
            .of("agrees", agrees)
            .of("row", cell.row)
            .of("column", cell.column)
            .of("unit", cell.unit)
            .value("printed", cell.printed.value);
        if let Some(computed) = cell.computed {
            fact = fact.value("computed", computed);
        }
        if let Some(reason) = reason {
            fact = fact.of("why", reason);
        }
        give(fact);
    }
    Ok(())
}

/// A table of printed and computed cells, and a list of deviations.
pub(super) fn table(facts: &Facts, section: &mut Section) {
    let columns = facts.names("column");
    let mut names = vec![""];
    names.extend(columns.iter().map(String::as_str));
    let rows: Vec<Vec<String>> = facts
        .names("row")
        .into_iter()
        .map(|row| {
            let of_row = facts.with("row", &row);
            let cells = columns.iter().map(|column| {
                let fact = of_row.with("column", column);
                fact.0.first().map_or_else(String::new, both)
            });
            let mut line = vec![row.clone()];
            line.extend(cells);
            line
        })
        .collect();
    section.say(
        "Computed here, with the printed value in brackets. ~ marks cells that agree only within \
         rounding, * marks cells that differ.",
    );
    section.table(&names, &rows);
    let count = |agrees| facts.with("agrees", agrees).0.len();
    let (exact, within, deviating) = (count("digit"), count("rounding"), count("no"));
    let rest = [
        (within, "agree only within rounding"),
        (deviating, "differ by more"),
    ];
    let rest: Vec<String> = rest
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!(", {count} {what}"))
        .collect();
    section.say(format!(
        "{exact} of {} computed cells agree to the last printed digit{}{}.",
        exact + within + deviating,
        rest.concat(),
        match count("input") {
            0 => String::new(),
            inputs => format!(
                "; {inputs} more are read off the paper's Figure 11 and are inputs themselves"
            ),
        }
    ));
    for (agrees, word) in [("rounding", "Within rounding"), ("no", "Differs")] {
        let some = facts.with("agrees", agrees);
        for why in some.names("why") {
            let cells: Vec<String> = some
                .with("why", &why)
                .0
                .iter()
                .map(|fact| format!("{}, {}", fact.label("row"), fact.label("column")))
                .collect();
            section.say(format!("{word}: {}: {why}.", cells.join("; ")));
        }
    }
}

fn both(fact: &Fact) -> String {
    let printed = fact.get("printed");
    let digits = if printed.fract() == 0.0 { 0 } else { 2 };
    let unit = match fact.label("unit") {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    if fact.label("agrees") == "input" {
        return format!("({}{unit})", number(printed, digits));
    }
    let mark = match fact.label("agrees") {
        "no" => " *",
        "rounding" => " ~",
        _ => "",
    };
    format!(
        "{} ({}){unit}{mark}",
        number(fact.get("computed"), 2),
        number(printed, digits)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_evictions_are_those_of_equation_1() {
        let mut facts = Vec::new();
        measure_5(&mut |fact| facts.push(fact)).unwrap();
        let simulated = Facts(facts).with("is", "simulated");
        assert_eq!(simulated.0.len(), 5);
        for fact in &simulated.0 {
            let (share, bound) = (fact.get("evicting_share"), fact.get("equation"));
            assert!((share / bound - 1.0).abs() < 0.03, "{fact:?}");
        }
    }

    #[test]
    fn a_cell_shows_ours_and_the_printed_one() {
        let fact = Fact::new("x")
            .of("unit", "$")
            .of("agrees", "no")
            .value("printed", 3603.0)
            .value("computed", 3603.44);
        assert_eq!(both(&fact), "3603.44 (3603) $ *");
    }
}
