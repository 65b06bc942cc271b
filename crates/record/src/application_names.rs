// SPDX-License-Identifier: Apache-2.0
//! Names for the numbers that inspection gives: applications, categories, confidences and risks.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::text_table::{clean, shortened};
use crate::{Input, RuleNames, Texts, verdict_name};

/// The names that an inspection library has for its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplicationNames {
    /// Name and version of the library: `nDPI 4.2.0`.
    pub library: String,
    /// Number, name and category of every protocol and service.
    pub applications: Vec<(u32, String, u8)>,
    /// Number and name of every category.
    pub categories: Vec<(u8, String)>,
    /// Number and name of every means by which an application may be recognised.
    pub confidences: Vec<(u8, String)>,
    /// Bit and name of every risk.
    pub risks: Vec<(u8, String)>,
}

/// Separates the names of several risks.
pub const RISK_SEPARATOR: &str = "; ";

/// Bits of the application within a number. The bits above are the protocol that carries it.
const APPLICATION_BITS: u32 = 16;

/// Finds names by numbers, and numbers by names.
#[derive(Clone, Debug)]
pub struct NameIndex {
    names: Arc<ApplicationNames>,
    /// The index of each application in `names`, by its number. `by_name` has the numbers by name.
    by_number: HashMap<u32, usize>,
    by_name: HashMap<String, u32>,
}

/// Everything that turns the words of a record into texts.
#[derive(Debug)]
pub struct InspectedTexts {
    texts: Arc<Texts>,
    index: NameIndex,
    rules: Arc<RuleNames>,
}

impl InspectedTexts {
    /// The texts of a run, and the names of the library that inspects its packets.
    #[must_use]
    pub fn new(texts: Arc<Texts>, names: Arc<ApplicationNames>) -> Self {
        Self {
            texts,
            index: NameIndex::new(names),
            rules: Arc::default(),
        }
    }

    /// The names of the rules of a bridge.
    #[must_use]
    pub const fn rules(&self) -> &Arc<RuleNames> {
        &self.rules
    }

    /// Sets the names of the rules of a bridge.
    #[must_use]
    pub fn with_rules(self, rules: Arc<RuleNames>) -> Self {
        Self { rules, ..self }
    }

    /// The names of the library.
    #[must_use]
    pub const fn names(&self) -> &Arc<ApplicationNames> {
        &self.index.names
    }

    /// Calls `take` with the text of every value of an input that has a text column.
    pub fn each(
        &self,
        input: Input,
        values: impl Iterator<Item = Option<u64>>,
        mut take: impl FnMut(Option<&str>),
    ) {
        let name = |value: u64| match input {
            Input::Application => self.index.application(value as u32),
            Input::ApplicationCategory => numbered(&self.names().categories, value),
            Input::ApplicationConfidence => numbered(&self.names().confidences, value),
            _ => self.index.risks(value),
        };
        match input {
            Input::Application
            | Input::ApplicationCategory
            | Input::ApplicationConfidence
            | Input::Risk => values.for_each(|value| {
                let text = value.map(name).filter(|text| !text.is_empty());
                take(text.as_deref());
            }),
            Input::Verdict => values.for_each(|value| take(value.map(verdict_name))),
            Input::Rule => self.rules.each(values, take),
            // An empty text says nothing, and no format distinguishes it from an absent one.
            _ => (self.texts).resolve_each(values, |text| take(text.filter(|it| !it.is_empty()))),
        }
    }
}

impl NameIndex {
    /// The index of these names.
    #[must_use]
    pub fn new(names: Arc<ApplicationNames>) -> Self {
        let places = names.applications.iter().enumerate();
        let by_number = places.map(|(place, (number, ..))| (*number, place));
        // If two applications have the same name, it stands for the first one.
        let named = names.applications.iter().rev();
        let by_name = named.map(|(number, name, _)| (shown(name).into_owned(), *number));
        Self {
            by_number: by_number.collect(),
            by_name: by_name.collect(),
            names,
        }
    }

    /// The name of an application as nDPI's reader writes it: the protocol that carries the
    /// application, a point, and the application. If the two are equal or one is unknown, the name
    /// is that of one alone.
    #[must_use]
    pub fn application(&self, number: u32) -> Cow<'_, str> {
        let (carrier, application) = split(number);
        match (carrier, application) {
            (0, only) | (only, 0) => self.one(only),
            (carrier, application) if carrier == application => self.one(application),
            _ => {
                let name = format!("{}.{}", self.one(carrier), self.one(application));
                shortened(Cow::Owned(name)).0
            }
        }
    }

    /// The number of an application by its name.
    #[must_use]
    pub fn application_number(&self, name: &str) -> Option<u32> {
        let one = |name: &str| {
            self.by_name
                .get(name)
                .copied()
                .or_else(|| name.parse().ok())
        };
        one(name).or_else(|| {
            let mut points = name.match_indices('.');
            points.find_map(|(at, _)| {
                let (carrier, application) = (one(&name[..at])?, one(&name[at + 1..])?);
                let fits = carrier.max(application) >> APPLICATION_BITS == 0;
                fits.then_some(carrier << APPLICATION_BITS | application)
            })
        })
    }

    /// The name of an application's category. If the application is 0 or has no category, this is
    /// the category of its carrier, then that of number 0. Empty if the library knows none of them.
    #[must_use]
    pub fn category_of(&self, number: u32) -> Cow<'_, str> {
        let (carrier, application) = split(number);
        let of = |number: u32| Some(self.names.applications[*self.by_number.get(&number)?].2);
        let category = of(application).filter(|_| application != 0);
        match category.or_else(|| of(carrier)).or_else(|| of(0)) {
            Some(category) => numbered(&self.names.categories, category.into()),
            None => Cow::Borrowed(""),
        }
    }

    fn one(&self, number: u32) -> Cow<'_, str> {
        match self.by_number.get(&number) {
            Some(place) => shown(&self.names.applications[*place].1),
            None => Cow::Owned(number.to_string()),
        }
    }

    /// The names of the risks whose bits are set.
    fn risks(&self, bits: u64) -> Cow<'_, str> {
        let set = (0..u64::BITS as u8).filter(|bit| bits >> bit & 1 == 1);
        let names: Vec<_> = set
            .map(|bit| numbered(&self.names.risks, bit.into()))
            .collect();
        Cow::Owned(names.join(RISK_SEPARATOR))
    }
}

/// The protocol that carries an application, and the application.
const fn split(number: u32) -> (u32, u32) {
    let mask = (1 << APPLICATION_BITS) - 1;
    (number >> APPLICATION_BITS, number & mask)
}

/// The name of a number, or the number itself if it has none.
fn numbered(names: &[(u8, String)], number: u64) -> Cow<'_, str> {
    match names.iter().find(|(its, _)| u64::from(*its) == number) {
        Some((_, name)) => shown(name),
        None => Cow::Owned(number.to_string()),
    }
}

/// A name of the library as records show it. Users may add names, so they are cleaned too.
fn shown(name: &str) -> Cow<'_, str> {
    shortened(clean(name)).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts() -> InspectedTexts {
        let names = ApplicationNames {
            library: "nDPI 4.2.0".to_owned(),
            applications: vec![
                (0, "Unknown".to_owned(), 0),
                (5, "DNS".to_owned(), 14),
                (91, "TLS".to_owned(), 5),
                (133, "NetFlix".to_owned(), 17),
                (260, "My.Own".to_owned(), 5),
            ],
            categories: vec![
                (0, "Unspecified".to_owned()),
                (5, "Web".to_owned()),
                (17, "Streaming".to_owned()),
            ],
            confidences: vec![(4, "DPI".to_owned())],
            risks: vec![(3, "Missing SNI".to_owned()), (63, "Other".to_owned())],
        };
        InspectedTexts::new(Arc::new(Texts::new(1 << 16)), Arc::new(names))
    }

    fn shown(texts: &InspectedTexts, input: Input, value: u64) -> Option<String> {
        let mut shown = None;
        let values = std::iter::once(Some(value));
        texts.each(input, values, |text| shown = text.map(str::to_owned));
        shown
    }

    #[test]
    fn applications_are_named_as_the_library_names_them() {
        let texts = texts().index;
        for (number, name, category) in [
            (0, "Unknown", "Unspecified"),
            (91 << 16, "TLS", "Web"),
            (91, "TLS", "Web"),
            (91 << 16 | 91, "TLS", "Web"),
            (91 << 16 | 133, "TLS.NetFlix", "Streaming"),
            (91 << 16 | 260, "TLS.My.Own", "Web"),
            (5 << 16 | 999, "DNS.999", "14"),
        ] {
            assert_eq!(texts.application(number), name);
            assert_eq!(texts.category_of(number), category, "{name}");
            let found = texts.application_number(name).unwrap();
            assert_eq!(texts.application(found), name);
        }
        assert_eq!(texts.application_number("TLS.Nope"), None);
    }

    #[test]
    fn every_input_has_its_texts() {
        let texts = texts();
        let number = texts.texts.intern("example.org");
        for (input, value, text) in [
            (Input::Application, 5, Some("DNS")),
            (Input::ApplicationCategory, 17, Some("Streaming")),
            (Input::ApplicationCategory, 99, Some("99")),
            (Input::ApplicationConfidence, 4, Some("DPI")),
            (Input::Risk, 0, None),
            (Input::Risk, 1 << 63 | 1 << 3, Some("Missing SNI; Other")),
            (Input::Risk, 1 << 7, Some("7")),
            (Input::ServerName, number, Some("example.org")),
            (Input::Ja4, number + 1, None),
            (Input::Verdict, 2, Some("dropped")),
            (Input::Rule, 0, None),
            (Input::Rule, 7, Some("7")),
        ] {
            assert_eq!(shown(&texts, input, value).as_deref(), text, "{input:?}");
        }
        let all = shown(&texts, Input::Risk, u64::MAX).unwrap();
        assert_eq!(all.split(RISK_SEPARATOR).count(), 64);
    }

    proptest! {
        #[test]
        fn names_stand_for_one_number(carrier in 0u32..300, application in 0u32..300) {
            let texts = texts().index;
            let name = texts.application(carrier << 16 | application).into_owned();
            let number = texts.application_number(&name).unwrap();
            prop_assert_eq!(texts.application(number), name);
        }
    }
}
