// SPDX-License-Identifier: Apache-2.0
//! Evaluates rules on records.

use std::collections::HashMap;

use turboflow_query::{Answer, Cell, Input, Query, QueryError, Question, Show, answer, time_text};

use crate::State;
use crate::rule::{Kind, Rule, Severity};
use crate::state::forget;

/// Maximum number of alerts of a rule for one input; recipients cannot read more.
const ALERTS_MAX: usize = 100;

/// A group of records that exceeds a limit, is new or has fallen silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// The name of the rule.
    pub rule: String,
    /// How serious it is.
    pub severity: Severity,
    /// A sentence for people.
    pub summary: String,
    /// The fields of the group, with their values.
    pub labels: Vec<(String, String)>,
    /// The value that was compared with the limit. For a new or silent group, the time of its last
    /// packet in nanoseconds since 1970.
    pub value: u64,
    /// When it happened: the start of the period, or the time of the last packet of all records.
    pub time: String,
}

/// The result of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The alerts, largest value first.
    pub alerts: Vec<Alert>,
    /// Number of alerts that were left out because there are too many.
    pub left_out: usize,
    /// The column that the rule needs and the records lack. If set, the rule was not evaluated.
    pub lacks: Option<String>,
}

/// A row of the answer.
struct Group {
    time_ns: Option<u64>,
    labels: Vec<String>,
    value: u64,
    /// The value as people read it.
    shown: String,
}

/// Evaluates a rule on an input, which is read to its end. `clock_ns` is the time of the last
/// packet in nanoseconds since 1970, or an earlier time if that one is known to be wrong.
///
/// # Errors
/// [`QueryError`] if the rule's question does not fit the records, or the records cannot be read.
pub fn find(
    rule: &Rule,
    mut input: Input,
    clock_ns: u64,
    state: &mut State,
) -> Result<Found, QueryError> {
    let lacks = |name: &&String| !input.schema().iter().any(|column| column.name == **name);
    if let Some(column) = rule.needs.as_ref().filter(lacks) {
        return Ok(Found {
            lacks: Some(column.clone()),
            ..Found::default()
        });
    }
    let names: Vec<&str> = rule.fields().collect();
    let question = rule.question();
    let query = Query::parse(&question, input.shape())?;
    let groups = rule.groups(answer(&query, &mut input, None)?, names.len());
    let groups = match rule.kind {
        Kind::Amount if rule.distinct.is_some() => rule.beyond(counted(groups)),
        Kind::Amount => rule.beyond(groups),
        Kind::New | Kind::Silent => rule.changed(groups, clock_ns, state),
    };
    let left_out = groups.len().saturating_sub(ALERTS_MAX);
    let shown = groups.into_iter().take(ALERTS_MAX);
    Ok(Found {
        alerts: shown
            .map(|group| rule.alert(&names, group, clock_ns))
            .collect(),
        left_out,
        lacks: None,
    })
}

/// Merges groups that differ only in the value that is counted, and counts them.
fn counted(groups: Vec<Group>) -> Vec<Group> {
    let mut counts: HashMap<(Option<u64>, Vec<String>), u64> = HashMap::new();
    for group in groups {
        *counts.entry((group.time_ns, group.labels)).or_default() += 1;
    }
    let group = |((time_ns, labels), value)| Group {
        time_ns,
        labels,
        value,
        shown: value.to_string(),
    };
    counts.into_iter().map(group).collect()
}

impl Rule {
    /// Whether each group belongs to one period.
    fn is_timed(&self) -> bool {
        self.kind == Kind::Amount && self.period_s.is_some()
    }

    fn question(&self) -> Question {
        let mut fields = self.group_by.clone();
        if let Some(seconds) = self.period_s.filter(|_| self.is_timed()) {
            fields = format!("time:{seconds}s,{fields}");
        }
        if let Some(distinct) = &self.distinct {
            fields = format!("{fields},{distinct}");
        }
        let measure = match self.kind {
            Kind::Amount => self.measure.clone().unwrap_or_else(|| "records".to_owned()),
            Kind::New | Kind::Silent => "last".to_owned(),
        };
        Question {
            filter: self.filter.clone(),
            group_by: Some(fields),
            select: Some(measure),
            all_columns: true,
            ..Question::default()
        }
    }

    /// The groups of an answer. Their labels are formatted as in tables.
    fn groups(&self, answer: Answer, fields: usize) -> Vec<Group> {
        let skipped = usize::from(self.is_timed());
        let shows: Vec<Show> = answer.columns.iter().map(|column| column.show).collect();
        let group = |row: Vec<Cell>| {
            let labels = row.iter().zip(&shows).skip(skipped).take(fields);
            Group {
                time_ns: self.is_timed().then(|| number(row.first())),
                labels: labels.map(|(cell, show)| text(cell, *show)).collect(),
                value: number(row.last()),
                shown: row
                    .iter()
                    .zip(&shows)
                    .next_back()
                    .map_or_else(String::new, |(cell, show)| text(cell, *show)),
            }
        };
        answer.rows.into_iter().map(group).collect()
    }

    /// The groups above the limit, largest first.
    fn beyond(&self, mut groups: Vec<Group>) -> Vec<Group> {
        groups.retain(|group| self.above.is_some_and(|limit| group.value > limit));
        groups.sort_by(|left, right| {
            let order = right.value.cmp(&left.value);
            order.then_with(|| (left.time_ns, &left.labels).cmp(&(right.time_ns, &right.labels)))
        });
        groups
    }

    /// The groups that are new, or have fallen silent. No group of the first input is new, because
    /// that input only teaches the known groups.
    fn changed(&self, groups: Vec<Group>, clock_ns: u64, state: &mut State) -> Vec<Group> {
        let (known, is_learnt) = state.of(&self.name);
        let mut found = Vec::new();
        for group in groups {
            let key = key_of(&group.labels);
            let is_first = !known.contains_key(&key);
            // Files may come in any order, and times after `clock_ns` count as the present.
            let latest_ns = known.entry(key).or_default();
            *latest_ns = group.value.min(clock_ns).max(*latest_ns);
            if is_first && is_learnt && self.kind == Kind::New {
                found.push(group);
            }
        }
        if self.kind == Kind::Silent {
            let period_ns = self.period_s.unwrap_or(0).saturating_mul(1_000_000_000);
            // Silence is reported once: a group that comes back is learnt again.
            known.retain(|labels, seen_ns| {
                let is_silent = seen_ns.saturating_add(period_ns) < clock_ns;
                if is_silent {
                    found.push(Group {
                        time_ns: None,
                        labels: labels_of(labels),
                        value: *seen_ns,
                        shown: second(*seen_ns),
                    });
                }
                !is_silent
            });
        }
        forget(known);
        found
    }

    fn alert(&self, names: &[&str], group: Group, clock_ns: u64) -> Alert {
        let names = names.iter().map(|name| (*name).to_owned());
        let labels: Vec<(String, String)> = names.zip(group.labels).collect();
        let value = match self.kind {
            Kind::Amount => group.shown,
            Kind::New | Kind::Silent => second(group.value),
        };
        let mut summary = self.summary.replace("{value}", &value);
        for (name, label) in &labels {
            summary = summary.replace(&format!("{{{name}}}"), label);
        }
        Alert {
            rule: self.name.clone(),
            severity: self.severity,
            summary,
            labels,
            value: group.value,
            time: second(group.time_ns.unwrap_or(clock_ns)),
        }
    }
}

/// The key by which a group is remembered. It is JSON, because labels from packets may contain
/// anything.
fn key_of(labels: &[String]) -> String {
    serde_json::to_string(labels).expect("texts are JSON")
}

/// The labels of a remembered group.
fn labels_of(key: &str) -> Vec<String> {
    serde_json::from_str(key).unwrap_or_else(|_| vec![key.to_owned()])
}

/// A time, to the second.
fn second(time_ns: u64) -> String {
    time_text(time_ns / 1_000_000_000 * 1_000_000_000)
}

fn number(cell: Option<&Cell>) -> u64 {
    match cell {
        Some(Cell::Unsigned(number)) => *number,
        Some(Cell::Float(number)) => *number as u64,
        _ => 0,
    }
}

/// A field as tables show it. A time includes its date, like the time of the alert.
fn text(cell: &Cell, show: Show) -> String {
    match (cell, show) {
        (Cell::Unsigned(time_ns), Show::Time) => time_text(*time_ns),
        (cell, show) => cell.to_text(show, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server name contains whatever bytes a client sent.
    #[test]
    fn a_label_says_nothing_of_the_next_one() {
        let labels = |texts: [&str; 2]| texts.map(str::to_owned).to_vec();
        let [one, other] = [labels(["a\tb", "c"]), labels(["a", "b\tc"])];
        assert_ne!(key_of(&one), key_of(&other));
        for labels in [one, other] {
            assert_eq!(labels_of(&key_of(&labels)), labels);
        }
    }
}
