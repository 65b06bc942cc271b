// SPDX-License-Identifier: Apache-2.0
//! Reads a file of rules. All names are resolved here, so that decisions only compare numbers.

use std::collections::BTreeMap;

use toml::Spanned;
use turboflow_inspect::Confidence;
use turboflow_record::{ApplicationNames, did_you_mean, shorten};

use super::conditions::Conditions;
use super::decision::{Action, RuleId};
use super::fault::{MAX_NAME_BYTES, MAX_RULES, RulesError, RulesFault, RulesWarning};
use super::file::{CONFIDENCES, Entry, FileText, Key, List, RuleText};
use super::index::Index;
use super::resolve::{self, Resolver};
use super::sets::{Networks, ServerNames};
use super::{Rule, Rules, reach, words};

/// Reserved: records and counters use these names for flows without a rule.
const RESERVED: [&str; 4] = ["default", "undecided", "unknown", "other"];

pub(super) fn read(
    text: &str,
    names: Option<&ApplicationNames>,
    before: Option<&Rules>,
) -> Result<Rules, RulesError> {
    let mut reader = Reader {
        text,
        resolver: Resolver::new(names),
        numbers: before
            .map(|rules| rules.numbers.clone())
            .unwrap_or_default(),
        lines: BTreeMap::new(),
    };
    let file: FileText = toml::from_str(text).map_err(|error| reader.syntax_error(&error))?;
    let default = file.default.unwrap_or(Action::Pass);
    let undecided = file.undecided.as_ref();
    let drops_undecided = undecided.filter(|action| *action.get_ref() == Action::Drop);
    if let (Action::Drop, Some(written)) = (default, drops_undecided) {
        return Err(reader.error(written, "", RulesFault::NothingPasses));
    }
    if let Some(first_beyond) = file.rules.get(MAX_RULES) {
        let fault = RulesFault::TooManyRules(file.rules.len());
        return Err(reader.error(first_beyond, "", fault));
    }
    let rules = file.rules.iter().map(|rule| reader.rule(rule));
    let rules: Vec<Rule> = rules.collect::<Result<_, _>>()?;
    let mut warnings = reach::never_matching(&rules);
    if let Some(written) = drops_undecided {
        warnings.insert(
            0,
            RulesWarning {
                line: reader.line(written.span().start),
                what: reach::DROPS_UNDECIDED.to_owned(),
            },
        );
    }
    Ok(Rules {
        default,
        undecided: undecided.map_or(Action::Pass, |action| *action.get_ref()),
        other: file.other.unwrap_or(Action::Pass),
        min_confidence: match &file.min_confidence {
            Some(written) => reader.confidence(written)?,
            None => Confidence::Payload,
        },
        fail: file.fail.unwrap_or_default(),
        index: Index::new(&rules),
        rules,
        numbers: reader.numbers,
        warnings,
    })
}

struct Reader<'a> {
    text: &'a str,
    resolver: Resolver,
    numbers: BTreeMap<String, RuleId>,
    /// The line of each rule name so far.
    lines: BTreeMap<String, usize>,
}

impl Reader<'_> {
    /// The line that contains an offset, counted from 1.
    fn line(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    fn error<T>(&self, at: &Spanned<T>, subject: &str, fault: RulesFault) -> RulesError {
        RulesError {
            line: self.line(at.span().start),
            subject: subject.to_owned(),
            fault,
        }
    }

    fn syntax_error(&self, error: &toml::de::Error) -> RulesError {
        RulesError {
            line: self.line(error.span().unwrap_or_default().start),
            subject: String::new(),
            fault: RulesFault::Syntax(plain(error.message())),
        }
    }

    fn confidence(&self, written: &Spanned<String>) -> Result<Confidence, RulesError> {
        let name = written.get_ref();
        let known = CONFIDENCES.iter().find(|(known, _)| known == name);
        known.map(|(_, confidence)| *confidence).ok_or_else(|| {
            let known = CONFIDENCES.map(|(known, _)| format!("\"{known}\""));
            let fault = RulesFault::UnknownConfidence {
                name: shorten(name),
                known: words::one_of(&known),
            };
            self.error(written, "", fault)
        })
    }

    fn rule(&mut self, written: &Spanned<RuleText>) -> Result<Rule, RulesError> {
        let rule = written.get_ref();
        let line = self.line(written.span().start);
        self.check_name(&rule.name)?;
        let name = rule.name.get_ref().clone();
        self.lines.insert(name.clone(), line);
        let subject = format!("rule `{name}`: ");
        let when = self.conditions(rule.conditions(), &subject)?;
        if when.is_empty() {
            let action = rule.action.name();
            return Err(self.error(written, &subject, RulesFault::NoConditions { action }));
        }
        let except = match &rule.except {
            None => None,
            Some(except) => {
                let conditions = self.conditions(except.get_ref().conditions(), &subject)?;
                if conditions.is_empty() {
                    return Err(self.error(except, &subject, RulesFault::NoExceptions));
                }
                Some(conditions)
            }
        };
        let id = self.number(&rule.name)?;
        Ok(Rule {
            id,
            name,
            action: rule.action,
            when,
            except,
            line,
        })
    }

    fn check_name(&self, written: &Spanned<String>) -> Result<(), RulesError> {
        let name = written.get_ref();
        let fault = if !is_name(name) {
            RulesFault::BadName(shorten(name))
        } else if RESERVED.contains(&name.as_str()) {
            RulesFault::ReservedName(name.clone())
        } else if let Some(line) = self.lines.get(name) {
            let subject = format!("rule `{name}`: ");
            return Err(self.error(written, &subject, RulesFault::TakenName(*line)));
        } else {
            return Ok(());
        };
        Err(self.error(written, "", fault))
    }

    /// The number of a rule name: its previous number, or the next free one.
    fn number(&mut self, written: &Spanned<String>) -> Result<RuleId, RulesError> {
        if let Some(number) = self.numbers.get(written.get_ref()) {
            return Ok(*number);
        }
        let next = match self.numbers.values().max() {
            Some(last) => last.next(),
            None => RuleId::of(1),
        };
        let id = next.ok_or_else(|| self.error(written, "", RulesFault::TooManyNames))?;
        self.numbers.insert(written.get_ref().clone(), id);
        Ok(id)
    }

    fn conditions(
        &self,
        lists: [(Key, Option<&Spanned<List>>); 8],
        subject: &str,
    ) -> Result<Conditions, RulesError> {
        let mut conditions = Conditions::default();
        for (key, list) in lists {
            let Some(list) = list else { continue };
            if list.get_ref().0.is_empty() {
                return Err(self.error(list, subject, RulesFault::EmptyList(key.name())));
            }
            let names = self.values(key, list.get_ref(), subject, &mut conditions)?;
            conditions.words.push(words::condition(key, &names));
        }
        Ok(conditions)
    }

    /// Sets the condition of a key. Returns the canonical names of its values.
    fn values(
        &self,
        key: Key,
        list: &List,
        subject: &str,
        conditions: &mut Conditions,
    ) -> Result<Vec<String>, RulesError> {
        let mut names = Vec::with_capacity(list.0.len());
        macro_rules! each {
            ($resolve:expr) => {{
                let mut values = Vec::with_capacity(list.0.len());
                for written in &list.0 {
                    let resolved = $resolve(written.get_ref());
                    let (value, name) =
                        resolved.map_err(|fault| self.error(written, subject, fault))?;
                    values.push(value);
                    names.push(name);
                }
                values.into_iter()
            }};
        }
        match key {
            Key::Application => {
                conditions.application =
                    each!(|entry: &Entry| self.resolver.application(entry)).collect();
            }
            Key::Category => {
                conditions.category =
                    each!(|entry: &Entry| self.resolver.category(entry)).collect();
            }
            Key::ServerName => {
                let patterns: Vec<String> = each!(resolve::server_name).collect();
                conditions.server_name = ServerNames::new(patterns.iter().map(String::as_str));
            }
            Key::Protocol => conditions.protocol = each!(resolve::protocol).collect(),
            Key::Port => conditions.port = each!(resolve::ports).collect(),
            Key::Src => conditions.src = Networks::new(each!(resolve::network).as_slice()),
            Key::Dst => conditions.dst = Networks::new(each!(resolve::network).as_slice()),
            Key::Risk => {
                let bits = each!(|entry: &Entry| self.resolver.risk(entry));
                conditions.risk = bits.fold(0, |all, bit| all | bit);
            }
        }
        Ok(names)
    }
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric();
    let mut bytes = name.bytes();
    bytes.next().is_some_and(is_letter)
        && bytes.all(|byte| is_letter(byte) || matches!(byte, b'-' | b'_' | b'.'))
        && name.len() <= MAX_NAME_BYTES
}

/// Rewords a message of the TOML parser.
fn plain(message: &str) -> String {
    let message = message.lines().collect::<Vec<_>>().join("; ");
    let quoted = |text: &'_ str| -> Vec<String> {
        text.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let split = |start: &str| message.strip_prefix(start)?.split_once("`, ");
    if let Some((key, known)) = split("unknown field `") {
        let known = quoted(known);
        let hint = did_you_mean(key, known.iter().map(String::as_str));
        return format!(
            "unknown key `{}`{hint}keys: {}",
            shorten(key),
            known.join(", ")
        );
    }
    if let Some((name, known)) = split("unknown variant `") {
        let known: Vec<_> = quoted(known).iter().map(|it| format!("\"{it}\"")).collect();
        return format!(
            "there is no `{}`; write {}",
            shorten(name),
            words::one_of(&known)
        );
    }
    match message.as_str() {
        "missing field `name`" => "`name` is missing; write for example name = \"no-games\"".into(),
        "missing field `action`" => {
            "`action` is missing; write action = \"pass\" or action = \"drop\"".into()
        }
        _ => match message
            .strip_prefix("invalid type: ")
            .and_then(|it| it.split_once(", expected "))
        {
            Some((found, wanted)) => format!("this is {found}; write {wanted}"),
            None => message,
        },
    }
}
