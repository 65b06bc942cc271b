// SPDX-License-Identifier: Apache-2.0
//! `turboflow plan`: the resources that metering needs, before anything is bought or set up.

mod answer;
mod args;
mod card;
mod measure;
mod offload;
mod paper;
mod watch;

use anyhow::bail;
use turboflow_plan::offload::OffloadPlan;
use turboflow_plan::{Assumption, Assumptions, Measured, Question, Traffic};

use crate::exit::{Outcome, print};
use answer::Answer;
use args::refused;
use watch::Watched;

pub(crate) use args::PlanArgs;

pub(crate) fn run(args: &PlanArgs) -> anyhow::Result<Outcome> {
    args.refuse_unused_options()?;
    if args.paper {
        print(&paper::render(args.json)?)?;
        return Ok(Outcome::Well);
    }
    let mut assumptions = args.assumed()?;
    if args.assumptions {
        print(&answer::assumptions(&assumptions.shown(), args.json)?)?;
        return Ok(Outcome::Well);
    }
    // Impossible targets are refused before a capture is read or an interface watched.
    args.target().check().map_err(|error| refused(&error))?;
    if args.links() == 0 {
        bail!("--links is 0: at least one link is needed");
    }
    let card = args.offload.as_deref().map(card::read).transpose()?;
    let (mut traffic, watched) = traffic(args, &assumptions)?;
    traffic.check().map_err(|error| refused(&error))?;
    if let Some(watched) = &watched {
        weigh_ipv6(&watched.measured, &mut assumptions)?;
    }
    let copies = args.copies(&traffic, &assumptions)?;
    traffic = traffic.times(copies);
    let ask = |assumptions: &Assumptions| {
        let question = Question {
            traffic,
            measured: watched.as_ref().map(|watched| &watched.measured),
            copies,
            links: args.links(),
            target: args.target(),
            assumptions,
        };
        question.answer().map_err(|error| refused(&error))
    };
    let mut plan = ask(&assumptions)?;
    // Impossible arguments have been refused before the benchmark runs.
    if args.measure {
        measure(args, &traffic, &mut assumptions)?;
        plan = ask(&assumptions)?;
    }
    let offload = card.map(|card| {
        let planned = OffloadPlan::of(&card, &traffic, args.links(), &assumptions);
        planned.map_err(|error| refused(&error))
    });
    let offload = offload.transpose()?;
    let answer = Answer::new(&plan, args.target(), watched.as_ref(), offload.as_ref());
    print(&answer.render(args.json)?)?;
    Ok(watched.map_or(Outcome::Well, |watched| watched.say()))
}

/// Takes the share of IPv6 from the measurement, unless it is stated.
fn weigh_ipv6(measured: &Measured, assumptions: &mut Assumptions) -> anyhow::Result<()> {
    if !assumptions.is_default(Assumption::Ipv6Share) {
        return Ok(());
    }
    // Rounded up to a thousandth, as it is shown.
    let share = (measured.ipv6_share() * 1e3).ceil() / 1e3;
    let source = "measured: the larger of the shares of IPv6 in packets and in flow records";
    let set = assumptions.set(Assumption::Ipv6Share, share, source);
    set.map_err(|error| refused(&error))
}

/// The traffic of one link, measured or stated.
fn traffic(
    args: &PlanArgs,
    assumptions: &Assumptions,
) -> anyhow::Result<(Traffic, Option<Watched>)> {
    if let Some(traffic) = args.stated() {
        let checked = traffic.check().and_then(|()| {
            let idle_timeout_seconds = args.idle_timeout().as_secs_f64();
            traffic.check_active_flows(idle_timeout_seconds)
        });
        checked.map_err(|error| refused(&error))?;
        return Ok((traffic, None));
    }
    if !args.has_source() {
        bail!(
            "the traffic of a link is missing: read captures of it (-r FILE), watch its interface \
             (-i IFACE), or state --packets-per-second, --flows-per-second and --active-flows"
        );
    }
    let watched = watch::watch(args, &args.simulation(assumptions))?;
    let traffic = watched.measured.traffic();
    Ok((traffic.map_err(|error| refused(&error))?, Some(watched)))
}

/// Flows for the measurement of the aggregator: the number of open flows, within the benchmark's
/// limits.
const MEASURED_FLOWS: std::ops::RangeInclusive<f64> = 1e3..=20e6;

fn measure(
    args: &PlanArgs,
    traffic: &Traffic,
    assumptions: &mut Assumptions,
) -> anyhow::Result<()> {
    let open = traffic.active_flows * args.links() as f64;
    let flows = open.clamp(*MEASURED_FLOWS.start(), *MEASURED_FLOWS.end()) as u64;
    let records_per_s = measure::aggregator_records_per_s(flows);
    let per_core = Assumption::AggregatorRecordsPerSecondPerCore;
    let source = format!("measured on this machine with {flows} flows (--measure)");
    let set = assumptions.set(per_core, records_per_s, source);
    set.map_err(|error| refused(&error))
}
