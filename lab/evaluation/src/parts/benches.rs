// SPDX-License-Identifier: Apache-2.0
//! Turns rows of `turboflow-lab bench` into facts.

use turboflow_bench::{Options, Row};

use super::FactSink;
use crate::facts::Fact;

/// Runs a benchmark, and passes its rows on as facts of `part`.
pub(super) fn run(
    bench: &str,
    part: &'static str,
    options: &Options,
    give: FactSink<'_>,
) -> anyhow::Result<()> {
    turboflow_bench::run(bench, options, &mut |row| give(fact(part, &row)))?;
    Ok(())
}

fn fact(part: &str, row: &Row) -> Fact {
    let mut fact = Fact::new(part)
        .of("design", row.design.as_str())
        .of("traffic", row.traffic)
        .value("flows", row.flows as f64)
        .value("items_per_s", row.items_per_s)
        .value("ns_per_item", row.ns_per_item);
    let optional = [
        ("bytes_per_flow", row.bytes_per_flow),
        ("microflows_per_packet", row.microflows_per_packet),
        ("cores", row.cores.map(f64::from)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            fact = fact.value(name, value);
        }
    }
    fact
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_row_becomes_a_fact() {
        let mut row = Row::new("cores", "std", 1_000, "zipf", 10, Duration::from_secs(2));
        row.cores = Some(2);
        let fact = fact("figure12", &row);
        assert_eq!(
            (fact.label("design"), fact.label("traffic")),
            ("std", "zipf")
        );
        assert_eq!((fact.get("items_per_s"), fact.get("cores")), (5.0, 2.0));
        assert!(fact.get("bytes_per_flow").is_nan());
    }
}
