// SPDX-License-Identifier: Apache-2.0
//! Compares what several exporters saw of the same packets, hop by hop along the path of a flow.
//!
//! Each direction of a biflow is a flow. The hops of a flow are ordered by decreasing TTL.
//! Exporters with the same TTL, such as two spine switches that share a flow, form one hop. Without
//! TTLs, exporters are ordered by name. In time series, all packets of a flow count in the bucket
//! of its first packet.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use turboflow_query::{Answer, Cell, Question};

use crate::error::Refusal;
use crate::panel::Asked;
use crate::question::{Panel, within};
use crate::series::Buckets;

/// The key of a flow. `SWAPPED` gives the fields in the order of the opposite direction.
const KEY: [&str; 5] = ["src_addr", "dst_addr", "src_port", "dst_port", "protocol"];
const SWAPPED: [usize; 5] = [1, 0, 3, 2, 4];

/// Fields that hold the TTL of packets, in order of preference.
const TTL: [&str; 4] = ["max_ttl", "ttl", "min_ttl", "first_ttl"];

/// The key of one direction.
type FlowKey<'a> = [&'a Cell; 5];

/// What one exporter saw of a flow.
#[derive(Clone, Debug)]
struct Place {
    ttl: Option<u64>,
    exporter: String,
    packets: u64,
    first_ns: Option<u64>,
}

/// The step from one hop to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Link {
    flows: u64,
    /// Packets of these flows at the first hop; `behind` counts those at the second hop.
    before: u64,
    behind: u64,
    /// Both counts, by the index of the time bucket in which the flows began.
    over_time: BTreeMap<usize, (u64, u64)>,
}

impl Link {
    fn to_json(&self, (from, to): (String, String), points: usize) -> Value {
        let at = |place: usize| self.over_time.get(&place).copied().unwrap_or_default();
        json!({
            "from": from,
            "to": to,
            "flows": self.flows,
            "before": self.before,
            "behind": self.behind,
            "before_at": (0..points).map(|place| at(place).0).collect::<Vec<_>>(),
            "behind_at": (0..points).map(|place| at(place).1).collect::<Vec<_>>(),
        })
    }
}

/// Flows that were seen at one hop only: they took another path, or were lost as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Alone {
    flows: u64,
    packets: u64,
}

/// What the exporters' records say together.
#[derive(Debug, Default)]
struct Joined {
    /// Flows seen at more than one hop.
    seen: u64,
    links: BTreeMap<(String, String), Link>,
    /// By exporter.
    alone: BTreeMap<String, Alone>,
}

/// Answers a question about links.
pub(crate) fn links(asked: &Asked, panel: &Panel) -> Result<Value, Refusal> {
    let has = |name: &&str| asked.snapshot.has(name);
    if !has(&"exporter") || !KEY.iter().all(has) {
        let reason = "these records do not say which exporter saw them";
        return Err(Refusal::bad(reason));
    }
    let directions: Vec<&str> = ["", "reverse_"]
        .into_iter()
        .filter(|prefix| asked.snapshot.has(&format!("{prefix}packets")))
        .collect();
    let ttl = TTL.into_iter().find(|name| {
        let is_in = |prefix: &&str| asked.snapshot.has(&format!("{prefix}{name}"));
        directions.iter().all(is_in)
    });
    let buckets = asked
        .range
        .map(|range| Buckets::over(range, panel.points()));
    let select = directions.iter().map(|prefix| {
        let ttl = ttl.map(|name| format!(",max({prefix}{name})"));
        format!("{prefix}packets{}", ttl.unwrap_or_default())
    });
    let select = select.chain(buckets.map(|_| "first_ns".to_owned()));
    let question = Question {
        filter: asked.conditions(panel)?.text(),
        within: within(asked.range, &asked.snapshot),
        group_by: Some(format!("{},exporter", KEY.join(","))),
        select: Some(select.collect::<Vec<_>>().join(",")),
        ..Question::default()
    };
    let (answer, _, command) = asked.ask(question)?;
    let flows = flows(&answer, directions.len(), ttl.is_some());
    let all = flows.len();
    let Joined { seen, links, alone } = joined(flows.into_values(), buckets.as_ref());
    let points = buckets.map_or(0, |buckets| buckets.count());
    let links = links
        .into_iter()
        .map(|(name, link)| link.to_json(name, points));
    let alone = alone.into_iter().map(|(exporter, Alone { flows, packets })| {
        json!({ "exporter": exporter, "flows": flows, "packets": packets })
    });
    Ok(json!({
        "ttl": ttl,
        "start_ns": buckets.map(|its| its.range.0.to_string()),
        "width_ns": buckets.map(|its| its.width_ns.to_string()),
        "width": buckets.map(|its| its.width()),
        "flows": all,
        "flows_seen_twice": seen,
        "links": links.collect::<Vec<_>>(),
        "alone": alone.collect::<Vec<_>>(),
        "commands": [command],
    }))
}

/// What the exporters saw of each flow. A row holds the key; the exporter; for each direction, the
/// packets and the TTL if known; and the time of the first packet if known.
fn flows(answer: &Answer, directions: usize, has_ttl: bool) -> HashMap<FlowKey<'_>, Vec<Place>> {
    let show = answer.columns[KEY.len()].show;
    let width = 1 + usize::from(has_ttl);
    let mut flows: HashMap<FlowKey<'_>, Vec<Place>> = HashMap::new();
    for row in &answer.rows {
        let number = |place: usize| match row.get(place) {
            Some(Cell::Unsigned(number)) => Some(*number),
            _ => None,
        };
        let exporter = row[KEY.len()].to_text(show, false);
        for direction in 0..directions {
            let first = KEY.len() + 1 + direction * width;
            // A direction without packets was not seen anywhere.
            let Some(packets) = number(first).filter(|packets| *packets > 0) else {
                continue;
            };
            let key = match direction {
                0 => [0, 1, 2, 3, 4],
                _ => SWAPPED,
            };
            flows
                .entry(key.map(|field| &row[field]))
                .or_default()
                .push(Place {
                    exporter: exporter.clone(),
                    packets,
                    ttl: number(first + 1).filter(|_| has_ttl),
                    first_ns: number(KEY.len() + 1 + directions * width),
                });
        }
    }
    flows
}

/// The links of the flows, and the flows that are in no link.
fn joined(flows: impl Iterator<Item = Vec<Place>>, buckets: Option<&Buckets>) -> Joined {
    let mut joined = Joined::default();
    for hops in flows.map(hops) {
        if let [hop] = &hops[..] {
            let alone = joined.alone.entry(hop.exporter.clone()).or_default();
            alone.flows += 1;
            alone.packets += hop.packets;
            continue;
        }
        joined.seen += 1;
        let place = hops[0].first_ns.zip(buckets);
        let place = place.and_then(|(first_ns, buckets)| buckets.place(first_ns));
        for pair in hops.windows(2) {
            let name = (pair[0].exporter.clone(), pair[1].exporter.clone());
            let link = joined.links.entry(name).or_default();
            link.flows += 1;
            link.before += pair[0].packets;
            link.behind += pair[1].packets;
            if let Some(place) = place {
                let (before, behind) = link.over_time.entry(place).or_default();
                *before += pair[0].packets;
                *behind += pair[1].packets;
            }
        }
    }
    joined
}

/// The hops of a flow along its path.
fn hops(mut places: Vec<Place>) -> Vec<Place> {
    places.sort_by(|a, b| {
        let by_name = || a.exporter.cmp(&b.exporter);
        Reverse(a.ttl).cmp(&Reverse(b.ttl)).then_with(by_name)
    });
    let mut hops: Vec<Place> = Vec::new();
    for place in places {
        match hops.last_mut() {
            // An exporter may report a direction twice: as the forward part of one record, and as
            // the reverse part of another.
            Some(last) if last.exporter == place.exporter => last.packets += place.packets,
            Some(last) if place.ttl.is_some() && last.ttl == place.ttl => {
                last.packets += place.packets;
                last.exporter = format!("{} + {}", last.exporter, place.exporter);
            }
            _ => hops.push(place),
        }
    }
    hops
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(exporter: &str, ttl: Option<u64>, packets: u64) -> Place {
        Place {
            ttl,
            exporter: exporter.to_owned(),
            packets,
            first_ns: Some(7),
        }
    }

    #[test]
    fn exporters_of_one_ttl_are_one_hop() {
        let flow = vec![
            place("spine-b", Some(63), 4),
            place("leaf-2", Some(62), 9),
            place("spine-a", Some(63), 6),
            place("leaf-1", Some(64), 10),
        ];
        let flows = [flow, vec![place("leaf-1", Some(64), 5)]];
        let found = joined(flows.into_iter(), Some(&Buckets::over((0, 10), 10)));
        let link = |from: &str, to: &str, before, behind| {
            let link = Link {
                flows: 1,
                before,
                behind,
                over_time: [(0, (before, behind))].into(),
            };
            ((from.to_owned(), to.to_owned()), link)
        };
        let expected = [
            link("leaf-1", "spine-a + spine-b", 10, 10),
            link("spine-a + spine-b", "leaf-2", 10, 9),
        ];
        assert_eq!((found.seen, found.links), (1, expected.into()));
        let alone = Alone {
            flows: 1,
            packets: 5,
        };
        assert_eq!(found.alone, [("leaf-1".to_owned(), alone)].into());
    }

    #[test]
    fn without_ttl_exporters_are_in_the_order_of_their_names() {
        let flow = vec![place("b", None, 1), place("a", None, 2)];
        let names = hops(flow).into_iter().map(|hop| hop.exporter);
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
        assert!(hops(vec![place("a", None, 1), place("a", None, 2)]).len() == 1);
    }
}
