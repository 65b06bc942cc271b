// SPDX-License-Identifier: Apache-2.0
//! What exporters saw of the same flows: from one exporter to the next on their path.
//!
//! A flow passes its exporters in the order of falling TTL, and where records have none or two are
//! equal, in the order of their names.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use turboflow_query::{Cell, Question};

use crate::error::Refusal;
use crate::panel::Asked;
use crate::question::{Panel, within};

/// The key of a flow.
const KEY: [&str; 5] = ["src_addr", "dst_addr", "src_port", "dst_port", "protocol"];

/// Fields with the TTL of packets, the best one first.
const TTL: [&str; 4] = ["max_ttl", "ttl", "min_ttl", "first_ttl"];

/// What an exporter saw of a flow.
struct Place {
    ttl: Option<u64>,
    exporter: String,
    packets: u64,
}

/// From one exporter to the next.
#[derive(Default)]
struct Link {
    flows: u64,
    /// Packets of these flows at the first exporter, and at the second one.
    before: u64,
    behind: u64,
}

/// The answer to a question of links.
pub(crate) fn links(asked: &Asked, panel: &Panel) -> Result<Value, Refusal> {
    let has = |name: &&str| asked.snapshot.has(name);
    if !has(&"exporter") || !KEY.iter().all(has) {
        return Err(Refusal::bad(
            "these records do not say which exporter saw them",
        ));
    }
    let ttl = TTL.into_iter().find(|name| has(name));
    let packets = asked.snapshot.measure("packets");
    let mut select = packets.to_owned();
    select.extend(ttl.map(|name| format!(",max({name})")));
    let question = Question {
        filter: asked.conditions(panel)?.text(),
        within: within(asked.range, &asked.snapshot),
        group_by: Some(format!("{},exporter", KEY.join(","))),
        select: Some(select),
        ..Question::default()
    };
    let (answer, _, command) = asked.ask(question)?;
    let mut flows: HashMap<&[Cell], Vec<Place>> = HashMap::new();
    let show = answer.columns[KEY.len()].show;
    for row in &answer.rows {
        let number = |place: usize| match row.get(place) {
            Some(Cell::Unsigned(number)) => Some(*number),
            _ => None,
        };
        flows.entry(&row[..KEY.len()]).or_default().push(Place {
            exporter: row[KEY.len()].to_text(show, false),
            packets: number(KEY.len() + 1).unwrap_or(0),
            ttl: number(KEY.len() + 2),
        });
    }
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

/// The links of flows, and how many flows several exporters saw.
fn joined(flows: impl Iterator<Item = Vec<Place>>) -> (u64, BTreeMap<(String, String), Link>) {
    let mut links: BTreeMap<(String, String), Link> = BTreeMap::new();
    let mut seen = 0;
    for mut places in flows.filter(|places| places.len() > 1) {
        seen += 1;
        places.sort_by(|a, b| {
            let order = |place: &Place| Reverse(place.ttl);
            order(a)
                .cmp(&order(b))
                .then_with(|| a.exporter.cmp(&b.exporter))
        });
        for pair in places.windows(2) {
            let name = (pair[0].exporter.clone(), pair[1].exporter.clone());
            let link = links.entry(name).or_default();
            link.flows += 1;
            link.before += pair[0].packets;
            link.behind += pair[1].packets;
        }
    }
    (seen, links)
}
