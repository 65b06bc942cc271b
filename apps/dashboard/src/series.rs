// SPDX-License-Identifier: Apache-2.0
//! The largest groups over time, and the rest.
//!
//! A series takes three questions: which groups are the largest, the total of each bucket, and the
//! part of it that each of these groups has. The difference is the rest. If the key has few values,
//! one question asks for all groups over time, and the totals are their sums.

use std::collections::HashMap;

use serde_json::{Value, json};
use turboflow_query::{Answer, Cell, Counts, Query, Question};

use crate::answer;
use crate::error::Refusal;
use crate::panel::{Asked, any_of, before, keys_of};
use crate::question::{Conditions, Panel, command, within};

/// Number of groups if a question does not set one. `GROUPS_MAX` is the limit.
const GROUPS: usize = 8;
const GROUPS_MAX: usize = 50;

/// Measures that are sums, for which there is a rest.
const SUMS: [&str; 5] = [
    "bytes",
    "total_bytes",
    "packets",
    "total_packets",
    "records",
];

/// Keys that have few values.
const FEW: [&str; 6] = [
    "application",
    "end_reason",
    "exporter",
    "protocol",
    "src_country",
    "dst_country",
];

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Units of bucket widths, and the multiples of each that are used.
const WIDTHS: [(&str, u64, &[u64]); 5] = [
    ("ms", MS, &[1, 2, 5, 10, 20, 50, 100, 200, 500]),
    ("s", SECOND, &[1, 2, 5, 10, 15, 30]),
    ("m", MINUTE, &[1, 2, 5, 10, 15, 30]),
    ("h", HOUR, &[1, 2, 3, 6, 12]),
    ("d", DAY, &[1, 2, 5, 10, 30, 100, 365, 3650, 36_500]),
];

/// A range of time buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buckets {
    pub(crate) width_ns: u64,
    number: u64,
    unit: &'static str,
    /// Start of the first bucket and end of the last one, in nanoseconds since 1970.
    pub(crate) range: (u64, u64),
}

impl Buckets {
    /// Covers a range with at most `points` buckets of the smallest conventional width that allows
    /// it.
    pub(crate) fn over((from, to): (u64, u64), points: u64) -> Self {
        let widths = WIDTHS.iter().flat_map(|(unit, ns, numbers)| {
            let widths = numbers.iter();
            widths.map(move |number| (*unit, *number, ns * number))
        });
        let fits = |width_ns: u64| (to - 1) / width_ns - from / width_ns < points;
        let last = ("d", 36_500, 36_500 * DAY);
        let (unit, number, width_ns) = widths
            .into_iter()
            .find(|(.., width_ns)| fits(*width_ns))
            .unwrap_or(last);
        let end = ((to - 1) / width_ns + 1).saturating_mul(width_ns);
        Self {
            width_ns,
            number,
            unit,
            range: (from / width_ns * width_ns, end),
        }
    }

    /// The width, as written for `turboflow show`.
    pub(crate) fn width(&self) -> String {
        format!("{}{}", self.number, self.unit)
    }

    pub(crate) fn count(&self) -> usize {
        // The last bucket is shorter if it reaches the end of representable time.
        (self.range.1 - self.range.0).div_ceil(self.width_ns) as usize
    }

    /// The index of the bucket that contains a time.
    pub(crate) fn place(&self, start_ns: u64) -> Option<usize> {
        let within = (self.range.0..self.range.1).contains(&start_ns);
        within.then(|| ((start_ns - self.range.0) / self.width_ns) as usize)
    }

    /// As many buckets, immediately before these.
    fn before(&self) -> Option<Self> {
        let range = before(self.range)?;
        Some(Self { range, ..*self })
    }
}

/// What the questions of a series share.
struct Series<'a> {
    asked: &'a Asked,
    conditions: Conditions,
    measure: String,
    buckets: Buckets,
}

/// The questions of a series that do not depend on other answers: the total of each bucket, or all
/// groups over time; and the largest groups.
pub(crate) fn first_questions(asked: &Asked, panel: &Panel) -> Result<Vec<Question>, Refusal> {
    let series = Series::of(asked, panel)?;
    let keys = panel.group_by.as_deref();
    let largest = keys.map(|keys| series.largest(keys, top(panel)));
    let over_time = match keys.filter(|keys| series.has_few(keys)) {
        Some(keys) => series.over_time(&series.conditions, keys),
        None => series.total_question(&series.buckets),
    };
    Ok(std::iter::once(over_time).chain(largest).collect())
}

/// Number of groups that are shown separately.
fn top(panel: &Panel) -> usize {
    panel.top.unwrap_or(GROUPS).clamp(1, GROUPS_MAX)
}

/// Answers a question for a series.
pub(crate) fn series(asked: &Asked, panel: &Panel) -> Result<Value, Refusal> {
    let series = Series::of(asked, panel)?;
    let buckets = &series.buckets;
    let mut total = series.total(panel.group_by.as_deref())?;
    let mut commands = vec![std::mem::take(&mut total.command)];
    let mut json = json!({
        "measure": series.measure,
        "show": total.show,
        "width_ns": buckets.width_ns.to_string(),
        "width": buckets.width(),
        "start_ns": buckets.range.0.to_string(),
        "matched": answer::counts(&total.matched),
        "series": [],
    });
    if let Some(keys) = &panel.group_by {
        let parts = series.parts(keys, top(panel), total.all.take(), &mut commands)?;
        if series.has_rest(keys) {
            json["other"] = rest(&total.points, &parts.values);
        }
        json["groups"] = parts.groups.into();
        json["keys"] = keys_of(keys).into();
        json["series"] = parts.json.into();
    }
    json["total"] = total.points.iter().map(number).collect();
    if let Some(buckets) = buckets.before().filter(|_| panel.compare) {
        let before = series.total_of(&buckets)?;
        json["before"] = before.points.iter().map(number).collect();
        commands.push(before.command);
    }
    json["commands"] = commands.into();
    Ok(json)
}

fn is_host(key: &str) -> bool {
    let name = key.trim().split('/').next().unwrap_or_default();
    name.eq_ignore_ascii_case("host")
}

/// The value of a bucket; `None` if there was nothing to measure.
type Point = Option<f64>;

fn number(point: &Point) -> Value {
    match point {
        // Sums are whole numbers.
        Some(float) if float.fract() == 0.0 && *float < 9e15 => json!(*float as u64),
        Some(float) => json!(float),
        None => Value::Null,
    }
}

/// The difference between a total and the sum of its parts.
fn rest(total: &[Point], parts: &[Vec<Point>]) -> Value {
    let of_bucket = |(place, total): (usize, &Point)| {
        let parts = parts.iter().filter_map(|values| values[place]);
        number(&Some((total.unwrap_or(0.0) - parts.sum::<f64>()).max(0.0)))
    };
    total.iter().enumerate().map(of_bucket).collect()
}

/// The total of each bucket.
struct Total {
    points: Vec<Point>,
    matched: Counts,
    /// How the measure is shown.
    show: Option<&'static str>,
    command: String,
    /// All groups over time and their command, if they were asked for.
    all: Option<(Answer, String)>,
}

/// The largest groups.
struct Parts {
    /// Number of all groups.
    groups: u64,
    values: Vec<Vec<Point>>,
    json: Vec<Value>,
}

impl<'a> Series<'a> {
    fn of(asked: &'a Asked, panel: &Panel) -> Result<Self, Refusal> {
        let Some(range) = asked.range else {
            return Err(Refusal::bad("these records have no times"));
        };
        Ok(Self {
            asked,
            conditions: asked.conditions(panel)?,
            buckets: Buckets::over(range, panel.points()),
            measure: asked.measure(panel).unwrap_or_else(|| "records".to_owned()),
        })
    }

    fn question(&self, conditions: &Conditions, range: (u64, u64), group_by: String) -> Question {
        let snapshot = &self.asked.snapshot;
        Question {
            filter: conditions.text(),
            within: within(Some(range), snapshot),
            group_by: Some(group_by),
            select: Some(self.measure.clone()),
            ..Question::default()
        }
    }

    /// The key for time buckets.
    fn time(&self) -> String {
        let is_taken = self.asked.snapshot.has("time");
        let name = if is_taken { "group_time" } else { "time" };
        format!("{name}:{}", self.buckets.width())
    }

    fn total_question(&self, buckets: &Buckets) -> Question {
        self.question(&self.conditions, buckets.range, self.time())
    }

    /// The question for the largest groups.
    fn largest(&self, keys: &str, top: usize) -> Question {
        let question = self.question(&self.conditions, self.buckets.range, keys.to_owned());
        Question {
            by: Some(self.measure.clone()),
            top: Some(top),
            // Groups are ranked by what they have within the buckets.
            clip: question.within.is_some(),
            ..question
        }
    }

    /// The question for the groups of these records over time.
    fn over_time(&self, conditions: &Conditions, keys: &str) -> Question {
        let group_by = format!("{},{keys}", self.time());
        self.question(conditions, self.buckets.range, group_by)
    }

    /// The total of each bucket. If there are few groups, all of them are asked for over time, and
    /// their sums are the totals. This way the slowest step, spreading records over time, is done
    /// only once.
    fn total(&self, keys: Option<&str>) -> Result<Total, Refusal> {
        let few = keys.filter(|keys| self.has_few(keys));
        let all = few.map(|keys| self.asked.ask(self.over_time(&self.conditions, keys)));
        let Some(Ok((all, _, over_time))) = all else {
            return self.total_of(&self.buckets);
        };
        let command = command(&self.asked.given, &self.total_question(&self.buckets));
        Ok(self.total_in(&self.buckets, (all, command), Some(over_time)))
    }

    fn total_of(&self, buckets: &Buckets) -> Result<Total, Refusal> {
        let (answer, _, command) = self.asked.ask(self.total_question(buckets))?;
        Ok(self.total_in(buckets, (answer, command), None))
    }

    /// Adds up the totals from an answer: either of the totals themselves or, with `over_time`, of
    /// all groups over time.
    fn total_in(
        &self,
        buckets: &Buckets,
        (answer, command): (Answer, String),
        over_time: Option<String>,
    ) -> Total {
        let mut points = vec![self.nothing(); buckets.count()];
        for (place, value) in answer.rows.iter().filter_map(|row| point(row, buckets)) {
            points[place] = match (points[place], value) {
                (Some(sum), Some(more)) => Some(sum + more),
                (known, value) => value.or(known),
            };
        }
        Total {
            points,
            matched: answer.totals.matched,
            show: answer.columns.last().map(|it| answer::show_name(it.show)),
            command,
            all: over_time.map(|command| (answer, command)),
        }
    }

    /// Whether the rest, beyond the largest groups, is meaningful.
    fn has_rest(&self, keys: &str) -> bool {
        self.is_sum() && !keys.split(',').any(is_host)
    }

    /// Whether there are few groups and they add up to the total.
    fn has_few(&self, keys: &str) -> bool {
        self.has_rest(keys) && FEW.contains(&keys.trim())
    }

    /// Whether the measure is a sum.
    fn is_sum(&self) -> bool {
        let summed = self.measure.strip_prefix("sum(");
        SUMS.contains(&&*self.measure) || summed.is_some_and(|rest| rest.ends_with(')'))
    }

    /// The value of a bucket without records.
    fn nothing(&self) -> Point {
        self.is_sum().then_some(0.0)
    }

    fn parts(
        &self,
        keys: &str,
        top: usize,
        all: Option<(Answer, String)>,
        commands: &mut Vec<String>,
    ) -> Result<Parts, Refusal> {
        let (largest, query, command) = self.asked.ask(self.largest(keys, top))?;
        commands.push(command);
        let count = keys_of(keys);
        let places = largest.rows.iter().enumerate();
        let places: HashMap<&[Cell], usize> = places.map(|(at, row)| (&row[..count], at)).collect();
        let nothing = vec![self.nothing(); self.buckets.count()];
        let mut values = vec![nothing; largest.rows.len()];
        if !largest.rows.is_empty() {
            let (found, command) = match all {
                Some(all) => all,
                None => {
                    let these = self.conditions.and(any_of(&largest, &query));
                    let (found, _, command) = self.asked.ask(self.over_time(&these, keys))?;
                    (found, command)
                }
            };
            commands.push(command);
            for row in &found.rows {
                let Some(&group) = places.get(&row[1..=count]) else {
                    continue;
                };
                if let Some((place, value)) = point(row, &self.buckets) {
                    values[group][place] = value;
                }
            }
        }
        let rows = largest.rows.iter().zip(&values);
        let json = rows.map(|(row, values)| of_group(&largest, &query, row, values, count));
        Ok(Parts {
            groups: largest.totals.rows,
            json: json.collect(),
            values,
        })
    }
}

/// The index of a row's bucket, and its value.
fn point(row: &[Cell], buckets: &Buckets) -> Option<(usize, Point)> {
    let Some(Cell::Unsigned(start_ns)) = row.first() else {
        return None;
    };
    let value = match row.last() {
        Some(Cell::Unsigned(whole)) => Some(*whole as f64),
        Some(Cell::Float(float)) => Some(*float),
        _ => None,
    };
    Some((buckets.place(*start_ns)?, value))
}

fn of_group(answer: &Answer, query: &Query, row: &[Cell], values: &[Point], keys: usize) -> Value {
    let shows = answer.columns.iter().map(|column| column.show);
    let texts = row[..keys].iter().zip(shows);
    let texts: Vec<String> = texts.map(|(cell, show)| cell.to_text(show, true)).collect();
    let conditions: Option<Vec<String>> = query.conditions(row).into_iter().collect();
    let sum = answer.columns.last().zip(row.last());
    json!({
        "text": texts,
        "condition": conditions.map(|its| its.join(" and ")),
        "sum": sum.map(|(column, cell)| answer::value(cell, column.show)),
        "values": values.iter().map(number).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_of_everyday_width_and_cover_the_range() {
        let of = |from, to, points| {
            let buckets = Buckets::over((from, to), points);
            assert!(buckets.range.0 <= from && buckets.range.1 >= to);
            assert!(buckets.count() as u64 <= points);
            format!("{}{} {}", buckets.number, buckets.unit, buckets.count())
        };
        assert_eq!(of(0, 27 * SECOND, 120), "500ms 54");
        assert_eq!(of(5 * SECOND, 5 * SECOND + 1, 120), "1ms 1");
        assert_eq!(of(0, HOUR, 60), "1m 60");
        assert_eq!(of(1, HOUR + 1, 60), "2m 31");
        assert_eq!(of(0, DAY, 120), "15m 96");
        // The widest bucket is a century.
        let all = Buckets::over((0, u64::MAX), 1);
        assert_eq!((all.unit, all.count()), ("d", 6));
    }

    #[test]
    fn the_rest_is_what_is_left() {
        let parts = [vec![Some(1.0), None], vec![Some(2.0), Some(3.0)]];
        assert_eq!(rest(&[Some(10.0), Some(3.0)], &parts), json!([7, 0]));
    }
}
