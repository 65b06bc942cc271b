// SPDX-License-Identifier: Apache-2.0
//! One question of a page, and its answer in JSON.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};
use turboflow_query::{Answer, Cell, Query, Question};

use crate::Limits;
use crate::answer;
use crate::error::Refusal;
use crate::question::{Conditions, Kind, Panel, Request, command, within};
use crate::store::{Given, Snapshot};
use crate::{links, plan, series};

/// Most groups where all of them are rows, of some hundred bytes each.
const ROWS_MAX: usize = 1_000_000;

/// What questions of one request have in common.
pub(crate) struct Asked {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) given: Arc<Given>,
    pub(crate) limits: Limits,
    /// The filter of the request.
    conditions: Conditions,
    pub(crate) range: Option<(u64, u64)>,
    /// Set where no answer is waited for any more.
    pub(crate) stop: Option<Arc<AtomicBool>>,
}

impl Asked {
    /// # Errors
    /// The filter is invalid.
    pub(crate) fn new(
        request: &Request,
        snapshot: Arc<Snapshot>,
        given: Arc<Given>,
        limits: Limits,
        stop: Option<Arc<AtomicBool>>,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            conditions: Conditions::of([&request.filter], &snapshot)?,
            range: request.range(&snapshot),
            snapshot,
            given,
            limits,
            stop,
        })
    }

    /// The answer to one question.
    pub(crate) fn panel(&self, panel: &Panel) -> Result<Value, Refusal> {
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

    /// The conditions of the request and of a question, without the range of time.
    pub(crate) fn conditions(&self, panel: &Panel) -> Result<Conditions, Refusal> {
        let own = Conditions::of([&panel.filter], &self.snapshot)?;
        Ok(self.conditions.and(own.text()))
    }

    /// The question bound to the records; times are counted from the last packet.
    pub(crate) fn bound(&self, question: &Question) -> Result<Query, Refusal> {
        let question = Question {
            now_ns: self.snapshot.times_ns.map(|(_, last)| last),
            all_columns: true,
            ..question.clone()
        };
        let most = match question.top {
            Some(_) => self.limits.groups,
            // All of them become rows.
            None => self.limits.groups.min(ROWS_MAX),
        };
        let query = self.snapshot.query(&question)?;
        Ok(query.with_most_groups(most))
    }

    /// Asks as `turboflow show` would.
    pub(crate) fn ask(&self, question: Question) -> Result<(Answer, Query, String), Refusal> {
        let query = self.bound(&question)?;
        let answer = self.snapshot.answer(&query, self.stop.as_ref())?;
        let command = command(&self.given, &question);
        Ok((answer, query, command))
    }

    /// What is measured: what the question says, or bytes where there are some.
    pub(crate) fn measure(&self, panel: &Panel) -> Option<String> {
        let has = |name: &&str| self.snapshot.has(self.snapshot.measure(name));
        let usual = || ["bytes", "packets"].into_iter().find(has);
        let named = panel.by.as_deref().or_else(usual);
        named.map(|name| self.snapshot.measure(name).to_owned())
    }

    /// The columns of groups: what is measured, and how many records, packets and bytes. Others,
    /// such as times, would have to be read.
    fn usual_columns(&self, by: Option<&str>) -> String {
        // Where records have a column of that name, it is not the one that groups make.
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

    fn groups(&self, panel: &Panel) -> Result<Value, Refusal> {
        let Some(keys) = &panel.group_by else {
            return Err(Refusal::bad("groups need fields to group by"));
        };
        let conditions = self.conditions(panel)?;
        let by = self.measure(panel);
        let select = panel
            .select
            .clone()
            .or_else(|| Some(self.usual_columns(by.as_deref())));
        let question = |conditions: &Conditions, range| Question {
            filter: conditions.text(),
            within: within(range, &self.snapshot),
            group_by: Some(keys.clone()),
            by: by.clone(),
            select: select.clone(),
            ascending: panel.ascending,
            top: Some(panel.rows(&self.limits)),
            ..Question::default()
        };
        let (found, query, command) = self.ask(question(&conditions, self.range))?;
        let mut json = answer::to_json(&found, &query);
        json["command"] = command.into();
        json["by"] = json!(by);
        json["keys"] = keys_of(keys).into();
        if let Some(range) = self.range_before().filter(|_| panel.compare) {
            let these = conditions.and(any_of(&found, &query));
            let (before, _, command) = self.ask(Question {
                top: None,
                ..question(&these, Some(range))
            })?;
            json["before"] = before_of(&found, &before, keys_of(keys), by.as_deref());
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

    /// The period of equal length before the range.
    fn range_before(&self) -> Option<(u64, u64)> {
        before(self.range?)
    }
}

/// The period of equal length before.
pub(crate) fn before((from, to): (u64, u64)) -> Option<(u64, u64)> {
    Some((from.checked_sub(to - from)?, from))
}

/// How many keys a group has.
pub(crate) fn keys_of(group_by: &str) -> usize {
    group_by.split(',').count()
}

/// The condition that records of one of these groups pass; none where the language cannot say it.
pub(crate) fn any_of(answer: &Answer, query: &Query) -> Option<String> {
    let group = |row: &Vec<Cell>| {
        let keys: Option<Vec<String>> = query.conditions(row).into_iter().collect();
        Some(format!("({})", keys?.join(" and ")))
    };
    let groups: Option<Vec<String>> = answer.rows.iter().map(group).collect();
    let groups = groups.filter(|groups| !groups.is_empty())?.join(" or ");
    Some(groups).filter(|text| text.len() <= CONDITION_BYTES)
}

/// Longest condition that is made of groups; without it more groups are made, and left out later.
const CONDITION_BYTES: usize = 64 << 10;

/// What each group had in the period before.
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
