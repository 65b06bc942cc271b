// SPDX-License-Identifier: Apache-2.0
//! Runs the offload paper's flows through our table in the kernel.

use super::{FactSink, Part, Scale, offload};
use crate::facts::Raw;
use crate::report::axis::short;
use crate::report::{Section, number};

pub(super) const PART: Part = Part {
    name: "offload-kernel",
    title: "The offload paper's flows over the table in the kernel",
    measure,
    report,
    is_computed: false,
};

/// Numbers of active flows (Deri and others, section V). The largest takes 6 GB of kernel memory.
const FLOWS: [u32; 5] = [10_000, 100_000, 1_000_000, 10_000_000, 20_000_000];
/// Packets that the paper's generator sends per second.
const PACKETS: u64 = 89_000_000;

#[cfg(feature = "kernel")]
fn measure(scale: &Scale, give: FactSink<'_>) -> anyhow::Result<()> {
    use turboflow_bench::offload::run;

    for flows in scale.pick(&FLOWS[..1], &FLOWS[..]) {
        let ran = match run(*flows, scale.pick(PACKETS / 6, PACKETS)) {
            Err(error) if error.is_permission() => {
                eprintln!("evaluation: {}: left out: needs root: {error}", PART.name);
                return Ok(());
            }
            ran => ran?,
        };
        let births = ran.births as f64;
        let fact = crate::facts::Fact::new(PART.name)
            .value("flows", f64::from(*flows))
            .value(
                "packets_per_s",
                ran.packets as f64 * 1e9 / ran.took_ns as f64,
            )
            .value("births_per_s", births * 1e9 / ran.took_ns as f64)
            .value("host_share", ran.taps as f64 / ran.packets as f64)
            .value("packets_per_birth", ran.taps as f64 / births.max(1.0))
            .value(
                "us_per_birth",
                ran.learner_ns as f64 / 1e3 / births.max(1.0),
            )
            .value("learner_share", ran.learner_ns as f64 / ran.took_ns as f64)
            .value("taps_lost", ran.taps_lost as f64)
            .value("dropped", ran.dropped as f64)
            .value("refused", ran.refused as f64);
        give(fact);
    }
    Ok(())
}

/// Without the engine, there is nothing to measure.
#[cfg(not(feature = "kernel"))]
fn measure(_scale: &Scale, _give: FactSink<'_>) -> anyhow::Result<()> {
    let (flows, packets) = (FLOWS.len(), PACKETS);
    eprintln!(
        "evaluation: {}: left out ({flows} numbers of flows, {packets} packets each): built \
         without the feature `kernel`",
        PART.name
    );
    Ok(())
}

fn report(raw: &Raw, section: &mut Section) {
    let facts = raw.part(PART.name);
    if facts.0.is_empty() {
        section.say("Not measured: it needs the engine in the kernel, and root.");
        return;
    }
    section.say(
        "Test runs of the program of `--engine offload` on one processor, with all flows learned \
         before; user space has what is left of the machine. Then come the 89 M packets that the \
         paper's generator sends in a second, and a tenth of the flows is replaced, a hundredth at \
         a time. The first packet decides (no nDPI). Beside it is the share of packets that reached \
         the paper's host.\n\nThe kernel waits for all processors with each test run, so packets \
         are slow here, and come in bursts: few flows send many packets before the learner looks \
         again, up to the budget of 32 copies of each.",
    );
    let theirs = offload::host_shares();
    let rows = facts.0.iter().map(|fact| {
        let flows = fact.get("flows");
        let paper = theirs.iter().find(|(of, _)| *of == flows);
        vec![
            short(flows),
            number(fact.get("packets_per_s") / 1e6, 1),
            short(fact.get("births_per_s")),
            number(fact.get("host_share") * 100.0, 3),
            paper.map_or_else(String::new, |(_, share)| number(share * 100.0, 0)),
            number(fact.get("packets_per_birth"), 2),
            number(fact.get("learner_share") * 100.0, 1),
            short(fact.get("taps_lost")),
            short(fact.get("dropped")),
            short(fact.get("refused")),
        ]
    });
    let names = [
        "active flows",
        "M packets/s",
        "births/s",
        "packets at the host, %",
        "the paper's, nDPI",
        "packets at the host of a new flow",
        "user space, % of a processor",
        "copies lost",
        "packets lost",
        "rows refused",
    ];
    section.table(&names, &rows.collect::<Vec<_>>());
    section.say(
        "User space is the learner: it looks for copies each millisecond, decides, writes rows, and \
         looks at each row every 15 s. With so few new flows, the first and the last of these are \
         nearly all that it does; `cargo bench --package turboflow-engine-offload` has the cost of \
         a new flow.",
    );
}
