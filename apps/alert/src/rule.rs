// SPDX-License-Identifier: Apache-2.0
//! The syntax of rule files. `docs/alerts.md` describes each key.

use std::borrow::Cow;

use serde::Deserialize;
use thiserror::Error;

/// How bad it is.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Act now.
    Critical,
    /// Look at it.
    #[default]
    Warning,
    /// For the record.
    Info,
}

impl Severity {
    /// The severity as it is written in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// What makes a group of records an alert.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Its amount is above a limit.
    #[default]
    Amount,
    /// It was in no file before.
    New,
    /// It was in files before, and then for a period in none.
    Silent,
}

/// A question with a limit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What the alert is called: letters, digits and hyphens.
    pub name: String,
    #[serde(default)]
    pub(crate) severity: Severity,
    #[serde(default)]
    pub(crate) kind: Kind,
    /// For people; `{value}` and the names of `group_by` are replaced.
    pub(crate) summary: String,
    #[serde(rename = "where")]
    pub(crate) filter: Option<String>,
    pub(crate) group_by: String,
    /// Counts the different values of a field, in place of a measure.
    pub(crate) distinct: Option<String>,
    /// What is compared with the limit: a column of groups. Default: `records`.
    pub(crate) measure: Option<String>,
    pub(crate) above: Option<u64>,
    /// The time that an amount is of, or that a group is silent for, in seconds.
    pub(crate) period_s: Option<u64>,
    /// A column without which the rule is passed over.
    pub(crate) needs: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    rule: Vec<Rule>,
}

/// Why rules cannot be used.
#[derive(Debug, Error)]
pub enum RuleError {
    /// The file is not TOML, has unknown keys, or values of the wrong type.
    #[error("line {line}: {reason}")]
    Syntax {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The file has no rules.
    #[error("there are no rules: begin each with [[rule]]")]
    Empty,
    /// Keys of a rule contradict each other.
    #[error("rule {number}, {name:?}: {reason}")]
    Rule {
        /// The position of the rule, counted from 1.
        number: usize,
        /// Its name.
        name: String,
        /// What is wrong, and what to write instead.
        reason: Cow<'static, str>,
    },
}

/// Reads the rules of a file.
///
/// # Errors
/// [`RuleError`] with the line or the rule.
pub fn rules(text: &str) -> Result<Vec<Rule>, RuleError> {
    let RuleFile { rule: rules } =
        toml::from_str(text).map_err(|error| syntax_error(text, &error))?;
    if rules.is_empty() {
        return Err(RuleError::Empty);
    }
    for (index, rule) in rules.iter().enumerate() {
        let is_twice = rules[..index].iter().any(|before| before.name == rule.name);
        let reason = match rule.fault() {
            Some(reason) => reason,
            None if is_twice => "another rule has this name: give each its own".into(),
            None => continue,
        };
        return Err(RuleError::Rule {
            number: index + 1,
            name: rule.name.clone(),
            reason,
        });
    }
    Ok(rules)
}

impl Rule {
    /// For a rule about silence, the number of seconds after which silence is an alert.
    #[must_use]
    pub fn silent_after_s(&self) -> Option<u64> {
        self.period_s.filter(|_| self.kind == Kind::Silent)
    }

    /// Whether it finds only groups that were in no earlier file.
    #[must_use]
    pub fn is_about_new_groups(&self) -> bool {
        self.kind == Kind::New
    }

    /// The fields to group by.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.group_by.split(',').map(str::trim)
    }

    /// Describes keys that contradict each other, if there are any.
    fn fault(&self) -> Option<Cow<'static, str>> {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if self.name.is_empty() || self.name.len() > 32 || !self.name.chars().all(is_letter) {
            return Some("a name has 1 to 32 letters, digits and hyphens".into());
        }
        let is_known = |name: &&str| *name == "value" || self.fields().any(|field| field == *name);
        if let Some(name) = in_braces(&self.summary).find(|name| !is_known(name)) {
            return Some(Cow::Owned(format!(
                "summary has {{{name}}}, which is neither {{value}} nor a field of group_by: add \
                 the field there, or leave it out here"
            )));
        }
        self.contradiction().map(Cow::Borrowed)
    }

    fn contradiction(&self) -> Option<&'static str> {
        let has_measure = self.measure.is_some() || self.distinct.is_some();
        match self.kind {
            _ if self.period_s == Some(0) => Some("a period is 1 second or more"),
            Kind::Amount if self.above.is_none() => Some("write above = the limit"),
            Kind::Amount if self.measure.is_some() && self.distinct.is_some() => {
                Some("distinct is instead of measure: leave one of them out")
            }
            Kind::Silent if self.period_s.is_none() => {
                Some("write period_s = the seconds after which silence is an alert")
            }
            Kind::New | Kind::Silent if self.above.is_some() || has_measure => {
                Some("above, measure and distinct are for amounts: leave them out")
            }
            Kind::New if self.period_s.is_some() => {
                Some("period_s is for amounts and silence: leave it out")
            }
            _ => None,
        }
    }
}

/// An error of the TOML parser, with its line.
fn syntax_error(text: &str, error: &toml::de::Error) -> RuleError {
    let start = error.span().unwrap_or_default().start.min(text.len());
    let before = &text.as_bytes()[..start];
    RuleError::Syntax {
        line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
        reason: in_plain_words(&error.message().lines().collect::<Vec<_>>().join("; ")),
    }
}

/// A message of the TOML parser in plain words.
fn in_plain_words(message: &str) -> String {
    let after = |start: &str| message.strip_prefix(start);
    let typed = after("invalid type: ").or_else(|| after("invalid value: "));
    if let Some((found, wanted)) = typed.and_then(|found| found.rsplit_once(", expected ")) {
        let wanted = match wanted {
            "u64" | "i64" | "as i128" => "a whole number without quotes, from 0 to 2^63 - 1",
            "a string" => "text in quotes",
            "a sequence" | "struct Rule" => "[[rule]] before each rule",
            wanted => wanted,
        };
        return format!("found {found}: write {wanted}");
    }
    if after("wanted string or table").is_some() {
        return "write text in quotes".to_owned();
    }
    for (start, plain) in [
        ("missing field ", "a rule lacks the key "),
        ("unknown field ", "unknown key "),
        ("unknown variant ", "there is no "),
    ] {
        if let Some(rest) = after(start) {
            let known = rest.rsplit_once(", expected ");
            return match known {
                Some((name, known)) => format!("{plain}{name}; write {known}"),
                None => format!("{plain}{rest}"),
            };
        }
    }
    message.to_owned()
}

/// The names that a text has in braces.
fn in_braces(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split('{').skip(1);
    after.filter_map(|after| Some(after.split_once('}')?.0))
}
