// SPDX-License-Identifier: Apache-2.0
//! One question of a page (a panel), and its answer in JSON.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use turboflow_query::{Answer, Cell, Input, Query, QueryError, Question, answers};

use crate::Limits;
use crate::answer;
use crate::error::Refusal;
use crate::question::{Conditions, Kind, Panel, Request, command, within};
use crate::store::{Given, Snapshot};
use crate::{links, plan, series};

/// Maximum number of groups if all of them become rows, at a few hundred bytes each.
const ROWS_MAX: usize = 1_000_000;

/// What the questions of one request share.
pub(crate) struct Asked {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) given: Arc<Given>,
    pub(crate) limits: Limits,
    /// The filter of the request.
    conditions: Conditions,
    pub(crate) range: Option<(u64, u64)>,
    /// Set when no one waits for the answer any more.
    pub(crate) stop: Option<Arc<AtomicBool>>,
    /// Answers computed in advance, by command.
    found_ahead: Mutex<HashMap<String, Result<Answer, QueryError>>>,
}

impl Asked {
    /// # Errors
    /// If the filter is invalid.
    pub(crate) fn new(
        request: &Request,
        snapshot: Arc<Snapshot>,
        given: Arc<Given>,
        limits: Limits,
        stop: Option<Arc<AtomicBool>>,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            conditions: Conditions::of([&request.filter], &snapshot)?,
            range: request.range(&snapshot)?,
            snapshot,
            given,
            limits,
            stop,
            found_ahead: Mutex::default(),
        })
    }

    /// Answers several questions in order, and passes each answer to `each`. With `is_joint`, the
    /// group questions among them are first answered in a single pass over the records.
    pub(crate) fn panels(
        &self,
        panels: &[Panel],
        is_joint: bool,
        mut each: impl FnMut(usize, Result<Value, Refusal>),
    ) {
        let read = match is_joint {
            true => self.read_ahead(panels),
            false => Ok(()),
        };
        for (place, panel) in panels.iter().enumerate() {
            each(place, read.clone().and_then(|()| self.panel(panel)));
        }
    }

    /// Answers the group questions of these panels in advance, in one pass. An error of a single
    /// question becomes its answer; a read error is returned, and applies to all.
    fn read_ahead(&self, panels: &[Panel]) -> Result<(), Refusal> {
        let questions = panels.iter().filter_map(|panel| match panel.kind {
            Kind::Groups => Some(vec![self.groups_question(panel).ok()?]),
            Kind::Series => series::first_questions(self, panel).ok(),
            Kind::Records | Kind::Links | Kind::Plan => None,
        });
        let bound = questions.flatten().filter_map(|question| {
            let query = self.bound(&question).ok()?;
            Some((command(&self.given, &question), query))
        });
        let bound: BTreeMap<String, Query> = bound.collect();
        if bound.len() < 2 {
            return Ok(());
        }
        let queries: Vec<&Query> = bound.values().collect();
        let most = self.limits.groups as u64;
        let read = |input: &mut Input| answers(&queries, input, most);
        let found = self.snapshot.read(self.stop.as_ref(), read)?;
        let found = bound.keys().cloned().zip(found);
        let found = found.filter_map(|(command, answer)| Some((command, answer?)));
        self.found_ahead().extend(found);
        Ok(())
    }

    fn found_ahead(&self) -> MutexGuard<'_, HashMap<String, Result<Answer, QueryError>>> {
        let found = self.found_ahead.lock();
        found.unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to one question.
    fn panel(&self, panel: &Panel) -> Result<Value, Refusal> {
        if let Some(error) = &self.snapshot.error {
            return Err(Refusal::bad(error.clone()));
        }
        match panel.kind {
            Kind::Groups => self.groups(panel),
            Kind::Records => self.records(panel),
            Kind::Series => series::series(self, panel),
            Kind::Links => links::links(self, panel),
            Kind::Plan => plan::plan(self, panel),
        }
    }

    /// The conditions of the request and of the panel, without the range of time.
    pub(crate) fn conditions(&self, panel: &Panel) -> Result<Conditions, Refusal> {
        let own = Conditions::of([&panel.filter], &self.snapshot)?;
        Ok(self.conditions.and(own.text()))
    }

    /// The question, bound to the records. Relative times refer to the last packet.
    pub(crate) fn bound(&self, question: &Question) -> Result<Query, Refusal> {
        let question = Question {
            now_ns: self.snapshot.times_ns.map(|(_, last)| last),
            all_columns: true,
            ..question.clone()
        };
        let most = match question.top {
            Some(_) => self.limits.groups,
            // Without a limit on rows, all groups become rows.
            None => self.limits.groups.min(ROWS_MAX),
        };
        let query = self.snapshot.query(&question)?;
        Ok(query.with_most_groups(most))
    }

    /// Answers a question as `turboflow show` would. Also returns the query and the command.
    pub(crate) fn ask(&self, question: Question) -> Result<(Answer, Query, String), Refusal> {
        let query = self.bound(&question)?;
        let command = command(&self.given, &question);
        let known = self.found_ahead().remove(&command);
        let answer = known.unwrap_or_else(|| self.snapshot.answer(&query, self.stop.as_ref()))?;
        Ok((answer, query, command))
    }

    /// The measure that the panel names, or by default bytes or packets if the records have them.
    pub(crate) fn measure(&self, panel: &Panel) -> Option<String> {
        let has = |name: &&str| self.snapshot.has(self.snapshot.measure(name));
        let usual = || ["bytes", "packets"].into_iter().find(has);
        let named = panel.by.as_deref().or_else(usual);
        named.map(|name| self.snapshot.measure(name).to_owned())
    }

    /// The columns of groups: records, packets, bytes, the measure and the share. Further columns,
    /// such as times, would have to be read from the files.
    fn usual_columns(&self, by: Option<&str>) -> String {
        // A column of the file with that name takes precedence, so the measure has a prefix.
        let [records, share] = ["records", "share"].map(|name| match self.snapshot.has(name) {
            true => format!("group_{name}"),
            false => name.to_owned(),
        });
        let measures = ["packets", "bytes"].map(|name| self.snapshot.measure(name));
        let measures = measures.into_iter().filter(|name| self.snapshot.has(name));
        let mut columns = vec![&*records];
        columns.extend(measures);
        columns.extend(by.filter(|by| !columns.contains(by)));
        columns.push(&share);
        columns.join(",")
    }

    /// The question for groups within the request's range of time.
    fn groups_question(&self, panel: &Panel) -> Result<Question, Refusal> {
        let Some(keys) = &panel.group_by else {
            return Err(Refusal::bad("groups need fields to group by"));
        };
        let by = self.measure(panel);
        let usual = || self.usual_columns(by.as_deref());
        let within = within(self.range, &self.snapshot);
        Ok(Question {
            filter: self.conditions(panel)?.text(),
            clip: panel.clip && is_clipped(&within, keys),
            within,
            group_by: Some(keys.clone()),
            select: Some(panel.select.clone().unwrap_or_else(usual)),
            ascending: panel.ascending,
            top: Some(panel.rows(&self.limits)),
            by,
            ..Question::default()
        })
    }

    fn groups(&self, panel: &Panel) -> Result<Value, Refusal> {
        let question = self.groups_question(panel)?;
        let question_keys = question.group_by.clone().unwrap_or_default();
        let keys = keys_of(&question_keys);
        let by = question.by.clone();
        let (found, query, command) = self.ask(question.clone())?;
        let mut json = answer::to_json(&found, &query);
        json["command"] = command.into();
        json["by"] = json!(by);
        json["keys"] = keys.into();
        if let Some(range) = self.range_before().filter(|_| panel.compare) {
            let these = self.conditions(panel)?.and(any_of(&found, &query));
            let within = within(Some(range), &self.snapshot);
            let (before, _, command) = self.ask(Question {
                filter: these.text(),
                clip: panel.clip && is_clipped(&within, &question_keys),
                within,
                top: None,
                ..question
            })?;
            json["before"] = before_of(&found, &before, keys, by.as_deref());
            json["command_before"] = command.into();
        }
        Ok(json)
    }

    fn records(&self, panel: &Panel) -> Result<Value, Refusal> {
        let conditions = self.conditions(panel)?;
        let (found, query, command) = self.ask(Question {
            filter: conditions.text(),
            within: within(self.range, &self.snapshot),
            by: self.measure(panel),
            select: panel.select.clone(),
            ascending: panel.ascending,
            top: Some(panel.rows(&self.limits)),
            ..Question::default()
        })?;
        let mut json = answer::to_json(&found, &query);
        json["command"] = command.into();
        Ok(json)
    }

    /// The period of equal length before the request's range.
    fn range_before(&self) -> Option<(u64, u64)> {
        before(self.range?)
    }
}

/// Whether clipping has an effect: not without a range, and not with time buckets, which already
/// count records in part.
fn is_clipped(within: &Option<String>, keys: &str) -> bool {
    let is_time =
        |key: &str| matches!(key.trim().split_once(':'), Some(("time" | "group_time", _)));
    within.is_some() && !keys.split(',').any(is_time)
}

/// The period of equal length before a range.
pub(crate) fn before((from, to): (u64, u64)) -> Option<(u64, u64)> {
    Some((from.checked_sub(to - from)?, from))
}

/// Number of keys in a list of keys.
pub(crate) fn keys_of(group_by: &str) -> usize {
    group_by.split(',').count()
}

/// A condition that exactly the records of these groups pass; `None` if the filter language cannot
/// express it or if it would be too long.
pub(crate) fn any_of(answer: &Answer, query: &Query) -> Option<String> {
    let group = |row: &Vec<Cell>| {
        let keys: Option<Vec<String>> = query.conditions(row).into_iter().collect();
        Some(format!("({})", keys?.join(" and ")))
    };
    let groups: Option<Vec<String>> = answer.rows.iter().map(group).collect();
    let groups = groups.filter(|groups| !groups.is_empty())?.join(" or ");
    Some(groups).filter(|text| text.len() <= CONDITION_BYTES)
}

/// Maximum length of a condition made of groups, in bytes. Beyond it, all groups are computed and
/// the unwanted ones are dropped afterwards.
const CONDITION_BYTES: usize = 64 << 10;

/// The value of each group in the period before.
fn before_of(found: &Answer, before: &Answer, keys: usize, by: Option<&str>) -> Value {
    let column = |answer: &Answer| {
        let mut columns = answer.columns.iter();
        columns.position(|column| Some(&*column.name) == by)
    };
    let Some(column) = column(before) else {
        return Value::Null;
    };
    let show = before.columns[column].show;
    let rows = before.rows.iter();
    let known: HashMap<&[Cell], &Cell> = rows.map(|row| (&row[..keys], &row[column])).collect();
    let values = found.rows.iter().map(|row| {
        let cell = known.get(&row[..keys]);
        cell.map_or(json!(0), |cell| answer::value(cell, show))
    });
    Value::Array(values.collect())
}
