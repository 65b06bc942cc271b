// SPDX-License-Identifier: Apache-2.0
//! What it takes to meter the traffic of these records: what `turboflow plan` answers for the rates
//! that the records show.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use serde_json::{Value as Json, json};
use turboflow_plan::{
    Assumption, Assumptions, Impossible, Question as PlanQuestion, Recorded, RecordedFlow,
    Recording, Target, TooMany, Traffic,
};
use turboflow_query::{QueryError, Question, choose};
use turboflow_record::{Column, FlowBatch, Value};

use crate::answer;
use crate::error::Refusal;
use crate::panel::Asked;
use crate::question::{Panel, within};
use crate::series::Buckets;

/// The default idle timeout of `turboflow plan`.
const IDLE_TIMEOUT_NS: u64 = 30_000_000_000;

/// The columns that distinguish flows. The exporter is one of them: the packets that two exporters
/// saw are in the records of both.
const KEY: [&str; 6] = [
    "src_addr", "src_port", "dst_addr", "dst_port", "protocol", "exporter",
];
/// The key columns for the other direction of a biflow.
const REVERSE_KEY: [&str; 6] = [
    "dst_addr", "dst_port", "src_addr", "src_port", "protocol", "exporter",
];

/// Answers a request for a plan.
pub(crate) fn plan(asked: &Asked, panel: &Panel) -> Result<Json, Refusal> {
    let Some(range) = asked.range else {
        return Err(Refusal::bad("these records have no times"));
    };
    if !asked.snapshot.has("packets") {
        return Err(Refusal::bad("these records have no packets"));
    }
    let recorded = recorded(asked, panel, range)?;
    let refused = |error: Impossible| Refusal::bad(reason(&error));
    let planned = recorded.traffic().map_err(refused)?;
    let traffic = planned.traffic;
    let assumed = assumed(&recorded, &traffic);
    let mut assumptions = Assumptions::default();
    for (assumption, value) in &assumed {
        let set = assumptions.set(*assumption, *value, "--assume");
        set.map_err(refused)?;
    }
    let idle_timeout_seconds = recorded.idle_timeout_seconds();
    let checked = traffic.check();
    let checked = checked.and_then(|()| traffic.check_active_flows(idle_timeout_seconds));
    checked.map_err(refused)?;
    let question = PlanQuestion {
        traffic,
        measured: None,
        copies: 1.0,
        links: 1,
        target: Target::Default,
        assumptions: &assumptions,
    };
    let plan = question.answer().map_err(refused)?;
    let (open, begun) = over_time(&recorded, range, panel);
    let mean = recorded.packets / recorded.seconds();
    Ok(json!({
        "recorded": {
            "packets": recorded.packets,
            "bytes": recorded.bytes,
            "seconds": recorded.seconds(),
            "flows": recorded.flows_opened,
            "mean_packets_per_second": mean,
            "peak_active_flows": recorded.peak_active_flows,
            "peak_ns": recorded.peak_ns.map(|at_ns| at_ns.to_string()),
            "is_rate_raised": planned.is_rate_raised,
            "is_peak_raised": planned.is_peak_raised,
        },
        "idle_timeout_seconds": idle_timeout_seconds,
        "open": open,
        "begun": begun,
        "plan": plan,
        "commands": [command(&traffic, &assumed)],
    }))
}

/// Link speeds above the assumed one, in bits per second.
const FASTER_LINKS: [f64; 4] = [25e9, 100e9, 400e9, 1.6e12];

/// Assumptions that differ from the defaults: the share of IPv6, and a link that can carry the
/// load.
fn assumed(recorded: &Recorded, traffic: &Traffic) -> Vec<(Assumption, f64)> {
    // Rounded up to a thousandth, as on the page.
    let ipv6_share = (recorded.ipv6_share * 1e3).ceil() / 1e3;
    let load = traffic.bits_per_second().unwrap_or(0.0);
    let is_faster = load > Assumption::LinkBitsPerSecond.default_value();
    let mut links = FASTER_LINKS.into_iter();
    let link = links.find(|capacity| is_faster && load <= *capacity);
    let link = link.map(|capacity| (Assumption::LinkBitsPerSecond, capacity));
    let ipv6 = (ipv6_share > 0.0).then_some((Assumption::Ipv6Share, ipv6_share));
    ipv6.into_iter().chain(link).collect()
}

/// An error of the model, worded for the page.
fn reason(error: &Impossible) -> String {
    match error.argument {
        "observed_seconds" => error.mend.clone(),
        argument => format!(
            "{} is {}: {}",
            argument.replace('_', " "),
            error.written(),
            error.mend
        ),
    }
}

/// The rates that the records show within the range of time.
fn recorded(asked: &Asked, panel: &Panel, (from, to): (u64, u64)) -> Result<Recorded, Refusal> {
    // Flows whose last packet is up to one timeout before the range are still active in it.
    let since = from.saturating_sub(IDLE_TIMEOUT_NS);
    let question = Question {
        filter: asked.conditions(panel)?.text(),
        within: within(Some((since, to)), &asked.snapshot),
        ..Question::default()
    };
    let most = asked.limits.plan_records;
    let mut recording = Recording::new(from, to, IDLE_TIMEOUT_NS, most);
    let hashes = RandomState::new();
    let query = asked.bound(&question)?;
    let read = asked.snapshot.read(asked.stop.as_ref(), |input| {
        let columns = Columns::of(input.schema());
        choose(&query, input, &columns.all(), |batch, rows| {
            let flows = rows
                .iter()
                .map(|row| columns.flows(batch, *row as usize, &hashes));
            let mut flows = flows.flatten().flatten();
            let added = flows.try_for_each(|flow| recording.add(&flow));
            added.map_err(|TooMany| QueryError::Records { limit: most })
        })
    });
    match read {
        Ok(_) => Ok(recording.finish()),
        Err(QueryError::Records { limit }) => Err(Refusal::bad(format!(
            "more than {limit} flow records: choose less time, or filter"
        ))),
        Err(error) => Err(error.into()),
    }
}

/// Active and new flows over time, in the form of a series without groups.
fn over_time(recorded: &Recorded, range: (u64, u64), panel: &Panel) -> (Json, Json) {
    let buckets = Buckets::over(range, panel.points());
    let steps = recorded.steps(buckets.range.0, buckets.width_ns, buckets.count());
    let series = |measure: &str, values: Vec<u64>| {
        json!({
            "measure": measure,
            "show": "count",
            "width_ns": buckets.width_ns.to_string(),
            "width": buckets.width(),
            "start_ns": buckets.range.0.to_string(),
            "series": [],
            "total": values.into_iter().map(answer::number).collect::<Vec<_>>(),
            "commands": [],
        })
    };
    let active = steps.iter().map(|step| step.active_flows).collect();
    let opened = steps.iter().map(|step| step.flows_opened).collect();
    (series("flows", active), series("records", opened))
}

/// The command that produces the same plan.
fn command(traffic: &Traffic, assumed: &[(Assumption, f64)]) -> String {
    let mut words = vec!["turboflow plan".to_owned()];
    words.push(format!(
        "--packets-per-second {}",
        traffic.packets_per_second
    ));
    words.push(format!("--flows-per-second {}", traffic.flows_per_second));
    words.push(format!("--active-flows {}", traffic.active_flows));
    let bytes = traffic.mean_packet_bytes;
    words.extend(bytes.map(|bytes| format!("--mean-packet-bytes {bytes}")));
    let assumed = assumed.iter();
    words.extend(assumed.map(|(its, value)| format!("--assume {}={value}", its.name())));
    words.join(" ")
}

/// Positions of the columns that are read.
struct Columns {
    key: [Option<usize>; 6],
    reverse_key: [Option<usize>; 6],
    address: Option<usize>,
    forward: Counts,
    reverse: Counts,
}

/// Positions of the columns of one direction.
struct Counts {
    packets: Option<usize>,
    bytes: Option<usize>,
    first: Option<usize>,
    last: Option<usize>,
}

impl Counts {
    const fn all(&self) -> [Option<usize>; 4] {
        [self.packets, self.bytes, self.first, self.last]
    }
}

impl Columns {
    fn of(schema: &[Column]) -> Self {
        let place = |name: &str| schema.iter().position(|column| column.name == name);
        let counts = |prefix: &str| Counts {
            packets: place(&format!("{prefix}packets")),
            bytes: place(&format!("{prefix}bytes")),
            first: place(&format!("{prefix}first_ns")),
            last: place(&format!("{prefix}last_ns")),
        };
        Self {
            key: KEY.map(place),
            reverse_key: REVERSE_KEY.map(place),
            address: place("src_addr"),
            forward: counts(""),
            reverse: counts("reverse_"),
        }
    }

    /// The positions of all columns.
    fn all(&self) -> Vec<usize> {
        let counts = [&self.forward, &self.reverse];
        let counts = counts.into_iter().flat_map(Counts::all);
        self.key.into_iter().chain(counts).flatten().collect()
    }

    /// The flows of a record. A biflow has one for each direction that has packets.
    fn flows(
        &self,
        batch: &FlowBatch,
        row: usize,
        hashes: &RandomState,
    ) -> [Option<RecordedFlow>; 2] {
        let number = |column: Option<usize>| match batch.value(row, column?) {
            Value::Unsigned(number) => Some(number),
            _ => None,
        };
        let address = self.address.map(|column| batch.value(row, column));
        let is_ipv6 = matches!(address, Some(Value::Address(address)) if address.is_ipv6());
        let flow = |key: &[Option<usize>], counts: &Counts| {
            let packets = number(counts.packets).filter(|packets| *packets > 0)?;
            let first_ns = number(counts.first).or_else(|| number(self.forward.first))?;
            let last_ns = number(counts.last).or_else(|| number(self.forward.last));
            Some(RecordedFlow {
                hash: hash(batch, row, key, hashes),
                first_ns,
                last_ns: last_ns.unwrap_or(first_ns),
                packets,
                bytes: number(counts.bytes).unwrap_or(0),
                is_ipv6,
            })
        };
        [
            flow(&self.key, &self.forward),
            flow(&self.reverse_key, &self.reverse),
        ]
    }
}

/// A hash of the columns that distinguish flows.
fn hash(batch: &FlowBatch, row: usize, key: &[Option<usize>], hashes: &RandomState) -> u64 {
    let mut hasher = hashes.build_hasher();
    for column in key {
        match column.map_or(Value::Absent, |column| batch.value(row, column)) {
            Value::Address(address) => address.hash(&mut hasher),
            Value::Unsigned(number) => number.hash(&mut hasher),
            Value::Text(text) => text.hash(&mut hasher),
            _ => u8::MAX.hash(&mut hasher),
        }
    }
    hasher.finish()
}
