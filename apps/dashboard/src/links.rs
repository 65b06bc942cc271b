// SPDX-License-Identifier: Apache-2.0
//! What exporters saw of the same packets: from one hop to the next on the path of a flow.
//!
//! Each direction of a biflow is a flow. A flow passes its hops in the order of falling TTL;
//! exporters with one TTL, such as two spines that share a flow, are one hop. Where records have no
//! TTL, the order is that of the exporters' names.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use turboflow_query::{Answer, Cell, Question};

use crate::error::Refusal;
use crate::panel::Asked;
use crate::question::{Panel, within};

/// The key of a flow, and where the key of the other direction has each field.
const KEY: [&str; 5] = ["src_addr", "dst_addr", "src_port", "dst_port", "protocol"];
const SWAPPED: [usize; 5] = [1, 0, 3, 2, 4];

/// Fields with the TTL of packets, the best one first.
const TTL: [&str; 4] = ["max_ttl", "ttl", "min_ttl", "first_ttl"];

/// The flow of one direction.
type FlowKey<'a> = [&'a Cell; 5];

/// What an exporter saw of a flow.
#[derive(Clone, Debug)]
struct Place {
    ttl: Option<u64>,
    exporter: String,
    packets: u64,
}

/// From one hop to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Link {
    flows: u64,
    /// Packets of these flows at the first hop, and at the second one.
    before: u64,
    behind: u64,
}

/// The answer to a question of links.
pub(crate) fn links(asked: &Asked, panel: &Panel) -> Result<Value, Refusal> {
    let has = |name: &&str| asked.snapshot.has(name);
    if !has(&"exporter") || !KEY.iter().all(has) {
        let reason = "these records do not say which exporter saw them";
        return Err(Refusal::bad(reason));
    }
    let ttl = TTL.into_iter().find(|name| has(name));
    let directions: Vec<&str> = ["", "reverse_"]
        .into_iter()
        .filter(|prefix| asked.snapshot.has(&format!("{prefix}packets")))
        .collect();
    let select = directions.iter().map(|prefix| {
        let ttl = ttl.map(|name| format!(",max({prefix}{name})"));
        format!("{prefix}packets{}", ttl.unwrap_or_default())
    });
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
    let (seen, links) = joined(flows.into_values());
    let links = links.into_iter().map(|((from, to), link)| {
        json!({
            "from": from,
            "to": to,
            "flows": link.flows,
            "before": link.before,
            "behind": link.behind,
        })
    });
    Ok(json!({
        "ttl": ttl,
        "flows": all,
        "flows_seen_twice": seen,
        "links": links.collect::<Vec<_>>(),
        "commands": [command],
    }))
}

/// What exporters saw of each flow. A row has the key, the exporter, and for each direction the
/// packets and, where there is one, the TTL.
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
            // What a direction did not send was seen nowhere.
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
                });
        }
    }
    flows
}

/// The links of flows, and how many flows were seen at more than one hop.
fn joined(flows: impl Iterator<Item = Vec<Place>>) -> (u64, BTreeMap<(String, String), Link>) {
    let mut links: BTreeMap<(String, String), Link> = BTreeMap::new();
    let mut seen = 0;
    for hops in flows.map(hops).filter(|hops| hops.len() > 1) {
        seen += 1;
        for pair in hops.windows(2) {
            let name = (pair[0].exporter.clone(), pair[1].exporter.clone());
            let link = links.entry(name).or_default();
            link.flows += 1;
            link.before += pair[0].packets;
            link.behind += pair[1].packets;
        }
    }
    (seen, links)
}

/// The hops of a flow on its way.
fn hops(mut places: Vec<Place>) -> Vec<Place> {
    places.sort_by(|a, b| {
        let by_name = || a.exporter.cmp(&b.exporter);
        Reverse(a.ttl).cmp(&Reverse(b.ttl)).then_with(by_name)
    });
    let mut hops: Vec<Place> = Vec::new();
    for place in places {
        match hops.last_mut() {
            // An exporter that took answers for a flow of their own saw both.
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
        let (seen, links) = joined([flow].into_iter());
        let link = |from: &str, to: &str, before, behind| {
            let link = Link {
                flows: 1,
                before,
                behind,
            };
            ((from.to_owned(), to.to_owned()), link)
        };
        let expected = [
            link("leaf-1", "spine-a + spine-b", 10, 10),
            link("spine-a + spine-b", "leaf-2", 10, 9),
        ];
        assert_eq!((seen, links), (1, expected.into()));
    }

    #[test]
    fn without_ttl_exporters_are_in_the_order_of_their_names() {
        let flow = vec![place("b", None, 1), place("a", None, 2)];
        let names = hops(flow).into_iter().map(|hop| hop.exporter);
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
        assert!(hops(vec![place("a", None, 1), place("a", None, 2)]).len() == 1);
    }
}
