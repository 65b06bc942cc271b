// SPDX-License-Identifier: Apache-2.0
//! The questions of a request, and the `turboflow show` command that asks the same.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};
use turboflow_query::{EnrichmentFiles, Question, time_ns, time_text};

use crate::Limits;
use crate::error::Refusal;
use crate::store::{Given, Snapshot};

/// Questions about the records that pass one filter within one range of time.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    /// The filter, in the language of `turboflow show`.
    #[serde(default, rename = "where")]
    pub(crate) filter: Option<String>,
    /// Selects records with packets at or after this time, in nanoseconds since 1970.
    #[serde(default, deserialize_with = "time")]
    pub(crate) from: Option<u64>,
    /// Selects records that began before this time, in nanoseconds since 1970.
    #[serde(default, deserialize_with = "time")]
    pub(crate) to: Option<u64>,
    /// Both limits in one text, as for `--within`.
    #[serde(default)]
    pub(crate) within: Option<String>,
    pub(crate) panels: Vec<Panel>,
}

/// One question.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Panel {
    #[serde(default)]
    pub(crate) kind: Kind,
    /// A further condition.
    #[serde(default, rename = "where")]
    pub(crate) filter: Option<String>,
    #[serde(default)]
    pub(crate) group_by: Option<String>,
    /// The measure, which also sorts the rows.
    #[serde(default)]
    pub(crate) by: Option<String>,
    #[serde(default)]
    pub(crate) select: Option<String>,
    #[serde(default)]
    pub(crate) ascending: bool,
    /// Whether groups count only the part of each record that is in the range of time.
    #[serde(default)]
    pub(crate) clip: bool,
    #[serde(default)]
    pub(crate) top: Option<usize>,
    /// Maximum number of points in time.
    #[serde(default)]
    pub(crate) points: Option<u64>,
    /// Whether the preceding period is asked for, too.
    #[serde(default)]
    pub(crate) compare: bool,
}

/// What the rows of an answer are.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Groups.
    #[default]
    Groups,
    /// Records.
    Records,
    /// The largest groups over time, and the rest.
    Series,
    /// Packets from one exporter to the next.
    Links,
    /// What it takes to meter this traffic.
    Plan,
}

/// A time as text or number. JavaScript's numbers are not exact.
fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else {
        return Ok(None);
    };
    let number = time_ns(&text);
    number.map(Some).ok_or_else(|| {
        serde::de::Error::custom(
            "a time is a text: 2024-03-01T12:30:00Z, or nanoseconds since 1970",
        )
    })
}

/// Number of rows if a question does not set one.
const ROWS: usize = 100;
/// Number of points in time if a question does not set one. `POINTS_MAX` is the limit.
const POINTS: u64 = 120;
const POINTS_MAX: u64 = 2000;
/// Maximum length of a text in a question, in bytes.
const TEXT_BYTES: usize = 16 << 10;

/// Start (inclusive) and end (exclusive) of the requested range in nanoseconds, as far as given.
pub(crate) type Chosen = (Option<u64>, Option<u64>);

impl Request {
    /// Parses and checks a request.
    pub(crate) fn read(body: &[u8], limits: &Limits) -> Result<Self, Refusal> {
        let request: Self = serde_json::from_slice(body)
            .map_err(|error| Refusal::bad(format!("not a question: {error}")))?;
        if request.panels.len() > limits.panels {
            let most = limits.panels;
            return Err(Refusal::bad(format!("at most {most} questions at once")));
        }
        let is_long = |text: &String| text.len() > TEXT_BYTES;
        let own = [&request.filter, &request.within];
        if own.into_iter().flatten().any(is_long)
            || request.panels.iter().flat_map(Panel::texts).any(is_long)
        {
            return Err(Refusal::bad(format!(
                "a text of more than {TEXT_BYTES} bytes"
            )));
        }
        if request.within.is_some() && (request.from.is_some() || request.to.is_some()) {
            return Err(Refusal::bad(
                "a time is chosen twice: by within, and by from and to",
            ));
        }
        let range = request.from.zip(request.to);
        if range.is_some_and(|(from, to)| from >= to) {
            return Err(Refusal::bad("the range of time ends before it begins"));
        }
        Ok(request)
    }

    /// The requested range of time. Relative times refer to the last packet.
    pub(crate) fn chosen(&self, snapshot: &Snapshot) -> Result<Chosen, Refusal> {
        let Some(within) = &self.within else {
            return Ok((self.from, self.to));
        };
        let query = snapshot.query(&Question {
            within: Some(within.clone()),
            now_ns: snapshot.times_ns.map(|(_, last)| last),
            ..Question::default()
        })?;
        let (first, last) = query.within_ns().unwrap_or((0, u64::MAX));
        Ok((Some(first).filter(|first| *first > 0), last.checked_add(1)))
    }

    /// The requested range of time. The times of the records replace missing ends.
    pub(crate) fn range(&self, snapshot: &Snapshot) -> Result<Option<(u64, u64)>, Refusal> {
        let (from, to) = self.chosen(snapshot)?;
        let Some((first, last)) = snapshot.times_ns else {
            return Ok(None);
        };
        let from = from.unwrap_or(first);
        let to = to.unwrap_or(last.saturating_add(1));
        // A range whose end comes before all records must not be reversed.
        let from = from.min(to.saturating_sub(1));
        Ok(Some((from, to.max(from.saturating_add(1)))))
    }
}

impl Panel {
    fn texts(&self) -> impl Iterator<Item = &String> {
        let texts = [&self.filter, &self.group_by, &self.by, &self.select];
        texts.into_iter().flatten()
    }

    /// The number of points in time, limited to `POINTS_MAX`.
    pub(crate) fn points(&self) -> u64 {
        self.points.unwrap_or(POINTS).clamp(1, POINTS_MAX)
    }

    /// A rough relative cost: pairs of addresses make many groups, and a series asks three
    /// questions.
    pub(crate) fn weight(&self) -> usize {
        let keys = self.group_by.as_deref().unwrap_or_default().split(',');
        let keys = keys.map(|key| match key.contains("addr") || key.contains("host") {
            true => 3,
            false => 1,
        });
        let keys: usize = keys.sum();
        match self.kind {
            Kind::Series => 2 * keys + 2,
            Kind::Links | Kind::Plan => usize::MAX,
            Kind::Groups | Kind::Records => keys,
        }
    }

    /// The number of rows, within the limit.
    pub(crate) fn rows(&self, limits: &Limits) -> usize {
        self.top.unwrap_or(ROWS).min(limits.rows)
    }
}

/// The range of time as text for a question. Ends that exclude no record are omitted.
pub(crate) fn within(range: Option<(u64, u64)>, snapshot: &Snapshot) -> Option<String> {
    let ((from, to), (first, last)) = (range?, snapshot.times_ns?);
    let bound = |time_ns, is_one| match is_one {
        true => time_text(time_ns),
        false => String::new(),
    };
    let (from, to) = (bound(from, from > first), bound(to, to <= last));
    let is_part = !from.is_empty() || !to.is_empty();
    is_part.then(|| format!("{from}..{to}"))
}

/// Conditions that must all hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions(Vec<String>);

impl Conditions {
    /// Makes conditions of filters. Each filter is parsed on its own first, so that text that joins
    /// conditions cannot be smuggled in.
    pub(crate) fn of<'a>(
        filters: impl IntoIterator<Item = &'a Option<String>>,
        snapshot: &Snapshot,
    ) -> Result<Self, Refusal> {
        let mut conditions = Self::default();
        for filter in filters.into_iter().flatten() {
            let text = filter.trim();
            if text.is_empty() {
                continue;
            }
            let question = Question {
                filter: Some(filter.clone()),
                now_ns: snapshot.times_ns.map(|(_, last)| last),
                ..Question::default()
            };
            snapshot.query(&question)?;
            conditions.0.push(text.to_owned());
        }
        Ok(conditions)
    }

    pub(crate) fn and(&self, condition: Option<String>) -> Self {
        let mut all = self.clone();
        all.0.extend(condition);
        all
    }

    /// The conditions as one filter.
    pub(crate) fn text(&self) -> Option<String> {
        match &self.0[..] {
            [] => None,
            [one] => Some(one.clone()),
            many => {
                let many = many.iter().map(|one| match is_plain(one) {
                    true => one.clone(),
                    false => format!("({one})"),
                });
                Some(many.collect::<Vec<_>>().join(" and "))
            }
        }
    }
}

/// Whether a condition is a single comparison, which needs no parentheses around it.
fn is_plain(condition: &str) -> bool {
    let mut words = condition.split(' ');
    let operators = ["==", "!=", "<", "<=", ">", ">="];
    let (_, operator, value) = (words.next(), words.next(), words.next());
    let is_value = |value: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
        value.chars().all(is_letter)
    };
    operator.is_some_and(|word| operators.contains(&word))
        && value.is_some_and(is_value)
        && words.next().is_none()
}

/// The command that asks this question about those files.
pub(crate) fn command(given: &Given, question: &Question) -> String {
    let mut words = vec!["turboflow show".to_owned()];
    words.extend(given.files.iter().map(|path| file(path)));
    words.extend(enrichment(&given.enrichment));
    let options = [
        ("--where", &question.filter),
        ("--within", &question.within),
        ("--group-by", &question.group_by),
        ("--by", &question.by),
        ("--select", &question.select),
    ];
    for (option, value) in options {
        let value = value.as_ref();
        words.extend(value.map(|value| format!("{option} {}", shell(value))));
    }
    if question.clip {
        words.push("--clip".to_owned());
    }
    if question.ascending {
        words.push("--ascending".to_owned());
    }
    words.extend(question.top.map(|rows| format!("--top {rows}")));
    let counts_from_now = |filter: &String| filter.contains("now") || filter.contains('-');
    if question.filter.as_ref().is_some_and(counts_from_now) {
        words.push("--now last".to_owned());
    }
    words.join(" ")
}

/// The options that name the enrichment files.
fn enrichment(files: &EnrichmentFiles) -> Vec<String> {
    let options: [(&str, &[PathBuf]); 5] = [
        ("--hosts", &files.hosts),
        ("--services", &files.services),
        ("--networks", &files.networks),
        ("--asn", files.asn.as_slice()),
        ("--country", files.country.as_slice()),
    ];
    let options = options.into_iter();
    let words = options.flat_map(|(option, paths)| {
        let paths = paths.iter();
        paths.map(move |path| format!("{option} {}", file(path)))
    });
    words.collect()
}

fn file(path: &Path) -> String {
    shell(&path.display().to_string())
}

/// Quotes a word for the shell.
fn shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:=+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_shells() {
        assert_eq!(shell("a/b.parquet"), "a/b.parquet");
        assert_eq!(shell("it's > 1"), r"'it'\''s > 1'");
        assert_eq!(shell(""), "''");
    }

    #[test]
    fn conditions_are_joined_so_that_each_stays_whole() {
        let all = Conditions(vec!["port 80 or port 443".to_owned()]);
        assert_eq!(all.text().unwrap(), "port 80 or port 443");
        let all = all.and(Some("bytes > 5".to_owned()));
        assert_eq!(all.text().unwrap(), "(port 80 or port 443) and bytes > 5");
        assert!(!is_plain("bytes > (5)"));
        assert!(!is_plain("bytes > 5 or tcp"));
    }

    #[test]
    fn requests_are_read_strictly() {
        let limits = Limits::default();
        let read = |text: &str| Request::read(text.as_bytes(), &limits);
        let times = r#"{"panels":[],"from":"2024-03-01T12:30Z","to":"1709296200000000001"}"#;
        let times = read(times).unwrap();
        assert_eq!(times.to, times.from.map(|from| from + 1));
        for wrong in [
            "",
            "[]",
            "{}",
            r#"{"panels":[{"kind":"files"}]}"#,
            r#"{"panels":[],"file":"/etc/passwd"}"#,
            r#"{"panels":[],"from":5}"#,
            r#"{"panels":[],"from":"5","to":"5"}"#,
            r#"{"panels":[],"from":"5","within":"5.."}"#,
            r#"{"panels":[{"top":-1}]}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
