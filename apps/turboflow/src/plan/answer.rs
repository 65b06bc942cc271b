// SPDX-License-Identifier: Apache-2.0
//! The answer of the planner: a sentence and tables, or one JSON object.

use serde::Serialize;
use turboflow_formats::table::{self, Align, Table};
use turboflow_plan::offload::OffloadPlan;
use turboflow_plan::{Assumed, Assumption, Limit, MonitoringCost, Need, Plan, Target};

use super::offload;
use super::watch::{Source, Watched};
use crate::units::grouped;

/// An answer, ready to be shown.
#[derive(Serialize)]
pub(super) struct Answer<'a> {
    /// The answer in a sentence or two.
    answer: String,
    /// The measured traffic; absent if rates were stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a Source>,
    #[serde(flatten)]
    plan: &'a Plan,
    /// With a flow table; absent if none was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    offload: Option<&'a OffloadPlan>,
}

impl<'a> Answer<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        target: Target,
        watched: Option<&'a Watched>,
        offload: Option<&'a OffloadPlan>,
    ) -> Self {
        let mut answer = sentence(plan, target);
        if let Some(offload) = offload {
            answer += &format!(" {}", offload::sentence(offload));
        }
        Self {
            answer,
            source: watched.map(|watched| &watched.source),
            plan,
            offload,
        }
    }

    pub(super) fn render(&self, json: bool) -> anyhow::Result<String> {
        if json {
            return Ok(serde_json::to_string_pretty(self)? + "\n");
        }
        let (plan, mut text) = (self.plan, format!("{}\n\n", self.answer));
        if let Some(source) = self.source {
            text += &provenance(source);
        }
        text += &traffic(plan);
        text += "\nWhat it takes\n";
        text += &needs(plan);
        if let Some(offload) = self.offload {
            text += &offload::tables(offload);
        }
        text += "\nWhat it costs, for each Tb/s of links and for these links\n";
        text += &costs(plan);
        text += "\nPackets for each microflow record, by size of one link's table\n";
        text += &sizes(plan);
        let which = if plan.measured.is_some() {
            "measured"
        } else {
            "worst case"
        };
        text += &format!("\nLinks carried, by table memory and cores ({which})\n");
        text += &machines(plan);
        text += "\nAssumptions (`--assume NAME=VALUE` changes one)\n";
        text += &assumed(&plan.assumptions);
        Ok(text)
    }
}

/// The list of assumptions alone.
pub(super) fn assumptions(shown: &[Assumed], json: bool) -> anyhow::Result<String> {
    if json {
        return Ok(serde_json::to_string_pretty(shown)? + "\n");
    }
    Ok(assumed(shown))
}

fn sentence(plan: &Plan, target: Target) -> String {
    let kind = match plan.copies {
        1.0 => "like this".to_owned(),
        copies => format!("with {} times this traffic", amount(copies)),
    };
    if plan.capacity.is_some() {
        return carried(plan, &kind);
    }
    let (links, needs) = match plan.links {
        1 => (format!("One link {kind}"), "needs"),
        links => (format!("{} links {kind}", grouped(links)), "need"),
    };
    let Some(need) = plan.measured.or(plan.worst_case) else {
        return format!("{links}: no table is large enough in the worst case.");
    };
    let ratio = amount(need.packets_per_microflow);
    let rest = format!(
        "{} to aggregate, {} and {} of export bandwidth",
        cores(need.aggregator_cores),
        on_the_bus(&need, plan),
        at_most(plan, bits(plan.export.bits_per_second))
    );
    if matches!(target, Target::TableBytes(_)) {
        return format!(
            "{links} {needs}, with a table that makes one microflow record of {ratio} packets, {rest}."
        );
    }
    let table = if need.slots_per_link == 0 {
        "no table at all".to_owned()
    } else {
        format!(
            "{} of table, which makes one microflow record of {ratio} packets",
            memory(need.table_bytes)
        )
    };
    let worst = match (plan.measured, plan.worst_case) {
        (Some(_), Some(worst)) if worst.slots_per_link == 0 => {
            " That holds in the worst case too.".to_owned()
        }
        (Some(need), Some(worst)) if worst.slots_per_link == need.slots_per_link => {
            " That is enough in the worst case too.".to_owned()
        }
        (Some(_), Some(worst)) => format!(
            " In the worst case that takes a table of {}.",
            memory(worst.table_bytes)
        ),
        (Some(_), None) => " In the worst case no table is large enough.".to_owned(),
        (None, _) => " That is the worst case.".to_owned(),
    };
    format!("{links} {needs} {table}, {rest}.{worst}")
}

/// How many links a machine carries, and which limit it reaches first.
fn carried(plan: &Plan, kind: &str) -> String {
    let Some(capacity) = &plan.capacity else {
        return String::new();
    };
    let limited = |limit: Limit| format!("limited by the {}", name(limit));
    let machine = format!(
        "That table, those cores and a bus of {}",
        bits(bus_bits_per_second(plan))
    );
    let worst = whole(capacity.links_worst_case);
    let worst_limit = limited(capacity.limit_worst_case);
    match (capacity.links_measured, capacity.limit_measured) {
        (Some(links), Some(limit)) => format!(
            "{machine} carry {} links {kind}, {}; in the worst case {worst}, {worst_limit}.",
            whole(links),
            limited(limit)
        ),
        _ => format!("{machine} carry {worst} links {kind} in the worst case, {worst_limit}."),
    }
}

const fn name(limit: Limit) -> &'static str {
    match limit {
        Limit::Bus => "bus",
        Limit::Cores => "cores",
        Limit::Table => "table",
    }
}

fn bus_bits_per_second(plan: &Plan) -> f64 {
    let bus = Assumption::BusBitsPerSecond;
    let assumed = plan.assumptions.iter().find(|one| one.name == bus.name());
    assumed.map_or(bus.default_value(), |one| one.value)
}

fn on_the_bus(need: &Need, plan: &Plan) -> String {
    let load = bits(need.bus_bits_per_second);
    if need.bus_share > 1.0 {
        let bus = bits(bus_bits_per_second(plan));
        return format!("{load} on the bus (more than its {bus})");
    }
    format!("{load} on the bus")
}

/// Prefixes "at most" if the flow records are only an upper bound, as with stated rates.
fn at_most(plan: &Plan, amount: String) -> String {
    if plan.export.is_upper_bound {
        format!("at most {amount}")
    } else {
        amount
    }
}

/// With fewer packets or less time, a measurement is not representative of a link.
const FEW_PACKETS: u64 = 1_000;
const FEW_SECONDS: f64 = 1.0;

fn provenance(source: &Source) -> String {
    let without_flow = match source.frames_without_flow {
        0 => String::new(),
        frames => format!(", and {} frames that belong to no flow", grouped(frames)),
    };
    let busiest = match source.seconds {
        0.5.. => format!(
            "In the busiest half second there were {} packets/s. ",
            amount(source.busiest_packets_per_second)
        ),
        _ => String::new(),
    };
    let few = if source.packets < FEW_PACKETS || source.seconds < FEW_SECONDS {
        "That is little to plan with: watch the link at a busy time, for a minute or longer.\n"
    } else {
        ""
    };
    let silent = match source.silent_seconds {
        0.0 => String::new(),
        seconds => format!(
            "Pauses of more than {} s without a packet are left out of every rate: {seconds:.3} s \
             in all.\n",
            source.idle_timeout_seconds
        ),
    };
    let cut = if source.is_whole {
        ""
    } else {
        "The input was not complete: the answer leaves out what was damaged or lost.\n"
    };
    format!(
        "Measured on {}: {} packets in {:.3} s{without_flow}.\n{silent}{cut}{few}\
         {busiest}A flow is active until {} s after its last packet.\n\n",
        source.name,
        grouped(source.packets),
        source.seconds,
        source.idle_timeout_seconds,
    )
}

fn traffic(plan: &Plan) -> String {
    let traffic = &plan.traffic;
    let mut table = columns(["Traffic", "one link", "all links"]);
    let links = plan.links as f64;
    let mut row = |name: &str, value: f64, show: fn(f64) -> String| {
        table.push(vec![name.to_owned(), show(value), show(value * links)]);
    };
    row("packets", traffic.packets_per_second, a_second);
    row("new flows", traffic.flows_per_second, a_second);
    row("active flows, at most", traffic.active_flows, amount);
    if let Some(load) = traffic.bits_per_second() {
        row("load", load, bits);
    }
    table.render(None)
}

fn needs(plan: &Plan) -> String {
    let mut table = columns(["", "measured", "worst case"]);
    let mut row = |name: &str, show: &dyn Fn(&Need) -> String| {
        let of = |need: &Option<Need>| need.as_ref().map_or_else(|| "-".to_owned(), show);
        table.push(vec![
            name.to_owned(),
            of(&plan.measured),
            of(&plan.worst_case),
        ]);
    };
    row("slots of one link's table", &|need| {
        grouped(need.slots_per_link)
    });
    row("table memory, all links", &|need| memory(need.table_bytes));
    row("packets a microflow record", &|need| {
        amount(need.packets_per_microflow)
    });
    row("microflow records", &|need| {
        a_second(need.microflows_per_second)
    });
    row("cores to aggregate", &|need| amount(need.aggregator_cores));
    row("bus load", &|need| bits(need.bus_bits_per_second));
    row("share of the bus", &|need| percent(need.bus_share));
    if let Some(capacity) = &plan.capacity {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let measured = capacity.links_measured.map(amount);
        let worst = amount(capacity.links_worst_case);
        table.push(vec!["links carried".to_owned(), or_none(measured), worst]);
        let measured = capacity.limit_measured.map(|limit| name(limit).to_owned());
        let worst = name(capacity.limit_worst_case).to_owned();
        table.push(vec!["limited by".to_owned(), or_none(measured), worst]);
    }
    let export = &plan.export;
    table.render(None)
        + &format!(
            "Export: {} flow records/s, {}. Metering in software, without a switch: {}.\n",
            at_most(plan, amount(export.flow_records_per_second)),
            bits(export.bits_per_second),
            cores(plan.software_cores),
        )
}

fn costs(plan: &Plan) -> String {
    let mut table = columns(["", "in the switch", "", "in servers", ""]);
    let (ours, theirs) = (&plan.cost, &plan.server_based_cost);
    let mut row = |name: &str, times: f64, of: fn(&MonitoringCost) -> turboflow_plan::Cost| {
        let (ours, theirs) = (of(ours), of(theirs));
        table.push(vec![
            name.to_owned(),
            usd(ours.usd_per_terabit * times),
            watts(ours.watts_per_terabit * times),
            usd(theirs.usd_per_terabit * times),
            watts(theirs.watts_per_terabit * times),
        ]);
    };
    row("switches", 1.0, |cost| cost.switches);
    row("making flow records", 1.0, |cost| cost.generation);
    row("analysing them", 1.0, |cost| cost.analysis);
    row("monitoring, for each Tb/s", 1.0, MonitoringCost::monitoring);
    let all = format!("for these {} Tb/s", amount(plan.terabits_per_second));
    row(&all, plan.terabits_per_second, MonitoringCost::monitoring);
    table.render(None)
}

fn sizes(plan: &Plan) -> String {
    let mut table = columns(["slots", "memory", "measured", "worst case"]);
    // Every other simulated size, so that rows differ by a factor of four.
    let step = if plan.measured.is_some() { 2 } else { 1 };
    for row in plan.tables.iter().step_by(step) {
        let measured = row.measured_packets_per_microflow;
        table.push(vec![
            grouped(row.slots_per_link),
            memory(row.table_bytes_per_link),
            measured.map_or_else(|| "-".to_owned(), amount),
            amount(row.worst_case_packets_per_microflow),
        ]);
    }
    table.render(None)
}

fn machines(plan: &Plan) -> String {
    let rows = plan
        .machines
        .chunk_by(|a, b| a.table_bytes == b.table_bytes);
    let mut table = columns(["memory", "1 core", "2 cores", "3 cores", "4 cores"]);
    let mut is_any_limited = false;
    for row in rows {
        let links = row.iter().map(|machine| {
            let links = machine.links_measured.unwrap_or(machine.links_worst_case);
            let limit = machine.limit_measured.unwrap_or(machine.limit_worst_case);
            is_any_limited |= limit == Limit::Bus;
            let mark = if limit == Limit::Bus { "*" } else { "" };
            whole(links) + mark
        });
        let links: Vec<String> = links.collect();
        let memory = memory(row[0].table_bytes);
        table.push(std::iter::once(memory).chain(links).collect());
    }
    let bus = bits(bus_bits_per_second(plan));
    let note = format!("*: limited by the bus of {bus}\n");
    table.render(None) + if is_any_limited { &note } else { "" }
}

fn assumed(shown: &[Assumed]) -> String {
    let mut table = Table::new([
        ("name", Align::Left),
        ("value", Align::Right),
        ("source", Align::Left),
    ]);
    for one in shown {
        let value = one.value.to_string();
        table.push(vec![one.name.to_owned(), value, one.source.clone()]);
    }
    table.render(None)
}

pub(super) fn columns<const N: usize>(names: [&str; N]) -> Table {
    let align = |index| {
        if index == 0 {
            Align::Left
        } else {
            Align::Right
        }
    };
    Table::new(
        names
            .into_iter()
            .enumerate()
            .map(|(index, name)| (name, align(index))),
    )
}

/// A number with three significant digits.
pub(super) fn amount(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value < 0.001 => "< 0.001".to_owned(),
        value if value < 1.0 => format!("{value:.3}"),
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value if value < COUNTED => table::count(value.round() as u64),
        value => format!("{value:.2e}"),
    }
}

/// Larger amounts are written as powers of ten, because no unit prefix reaches that far.
const COUNTED: f64 = 1e18;

fn whole(value: f64) -> String {
    if value < COUNTED {
        grouped(value.floor() as u64)
    } else {
        format!("{value:.2e}")
    }
}

/// Rounded up, so that the amount is sufficient.
pub(super) fn memory(bytes: f64) -> String {
    if bytes < COUNTED {
        table::bytes_needed(bytes.ceil() as u64)
    } else {
        format!("{bytes:.2e} B")
    }
}

pub(super) fn percent(share: f64) -> String {
    match 100.0 * share {
        percent if percent > 0.0 && percent < 0.1 => "< 0.1 %".to_owned(),
        percent if percent < COUNTED => format!("{percent:.1} %"),
        percent => format!("{percent:.2e} %"),
    }
}

pub(super) fn a_second(value: f64) -> String {
    format!("{}/s", amount(value))
}

pub(super) fn bits(value: f64) -> String {
    let amount = amount(value);
    let gap = if amount.ends_with(char::is_numeric) {
        " "
    } else {
        ""
    };
    format!("{amount}{gap}b/s")
}

pub(super) fn cores(value: f64) -> String {
    let amount = amount(value);
    let plural = if amount == "1.00" { "" } else { "s" };
    format!("{amount} core{plural}")
}

fn usd(value: f64) -> String {
    format!("${}", amount(value))
}

fn watts(value: f64) -> String {
    format!("{} W", amount(value))
}
