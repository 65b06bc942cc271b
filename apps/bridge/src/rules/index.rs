// SPDX-License-Identifier: Apache-2.0
//! Finds the rules that may match a flow without trying every rule.
//!
//! Every kind of condition has a set of rules for each value: the rules that accept the value, and
//! those that do not use this kind of condition. A rule may match only if it is in the sets of all
//! kinds. A set has one bit per rule, in the order of the rules, so an intersection handles 64
//! rules at a time and yields them in order. A candidate that does not match only costs time, but a
//! matching rule must be in every set. Exceptions and confidence are not indexed; they are checked
//! when a candidate is evaluated.

use std::collections::HashMap;

use turboflow_inspect::Progress;

use super::Rule;
use super::conditions::Conditions;
use super::facts::{Application, Facts};
use super::sets::{Networks, Ranges, number};

/// A set of rules, as one bit per position in the file.
type Set = Vec<u64>;

/// The sets for all kinds of conditions.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    words: usize,
    all: Set,
    protocol: ByNumber,
    port: ByNumber,
    /// Source and destination for IPv4, then for IPv6.
    addresses: [[ByNumber; 2]; 2],
    applications: Applications,
    category: ByNumber,
    names: Names,
}

/// Sets by number. All numbers of a range have the same set.
#[derive(Clone, Debug, Default)]
struct ByNumber {
    /// The first number of each range, and the index of its set.
    starts: Vec<(u128, u32)>,
    sets: Vec<Set>,
}

/// The sets for applications.
#[derive(Clone, Debug, Default)]
struct Applications {
    any: Set,
    parts: HashMap<u16, Set>,
    whole: HashMap<u32, Set>,
}

/// The positions of rules that ask for a server name. They are lists because a name occurs in few
/// rules.
#[derive(Clone, Debug, Default)]
struct Names {
    any: Set,
    whole: HashMap<String, Vec<u16>>,
    below: HashMap<String, Vec<u16>>,
}

fn put(set: &mut [u64], place: usize) {
    set[place / 64] |= 1 << (place % 64);
}

/// The set of rules whose conditions satisfy `holds`.
fn those(rules: &[Rule], holds: impl Fn(&Conditions) -> bool) -> Set {
    let mut set = vec![0; rules.len().div_ceil(64)];
    for (place, rule) in rules.iter().enumerate() {
        if holds(&rule.when) {
            put(&mut set, place);
        }
    }
    set
}

impl Index {
    pub(super) fn new(rules: &[Rule]) -> Self {
        let by_bytes = |fits: &dyn Fn(&Conditions, u8) -> bool| {
            let sets = (0..=u8::MAX).map(|byte| (byte.into(), those(rules, |it| fits(it, byte))));
            ByNumber::of(sets)
        };
        let by_ranges = |ranges_of: &dyn Fn(&Conditions) -> Option<&Ranges>| {
            ByNumber::of_ranges(rules, ranges_of)
        };
        let by_address = |is_v4: bool, of: fn(&Conditions) -> &Networks| {
            by_ranges(&|it| {
                let networks = of(it);
                (!networks.is_empty()).then(|| networks.of_family(is_v4))
            })
        };
        let addresses = [true, false].map(|is_v4| {
            [
                by_address(is_v4, |it| &it.src),
                by_address(is_v4, |it| &it.dst),
            ]
        });
        Self {
            words: rules.len().div_ceil(64),
            all: those(rules, |_| true),
            protocol: by_bytes(&|it, byte| it.protocol.is_empty() || it.protocol.has(byte)),
            port: by_ranges(&|it| (!it.port.is_empty()).then_some(&it.port)),
            addresses,
            applications: Applications::new(rules),
            category: by_bytes(&|it, byte| it.category.is_empty() || it.category.has(byte)),
            names: Names::new(rules),
        }
    }

    /// The positions of the rules that may match, in order. All other rules do not match.
    pub(super) fn candidates(&self, facts: &Facts<'_>) -> impl Iterator<Item = usize> {
        let tuple = &facts.tuple;
        let ports = [tuple.source_port(), tuple.destination_port()];
        let ports = ports.map(|port| self.port.at(port.into()));
        let [sources, destinations] = &self.addresses[usize::from(tuple.source().is_ipv6())];
        let every = [
            self.protocol.at(tuple.protocol().into()),
            sources.at(number(tuple.source())),
            destinations.at(number(tuple.destination())),
        ];
        let applications = self.applications.of(facts, &self.all);
        let is_complete = facts.progress == Progress::Complete;
        let category = match is_complete {
            true => self.category.at(facts.application().category.into()),
            false => &self.all,
        };
        let named = self.names.of(facts);
        let (any_name, awaits_name) = (&self.names.any, named.is_none());
        let named = named.unwrap_or_default();
        let fit = move |word: usize| {
            let some = |sets: &[&[u64]]| sets.iter().fold(0, |all, set| all | set[word]);
            let mut fit = every
                .iter()
                .fold(category[word], |fit, set| fit & set[word]);
            fit &= some(&ports) & some(&applications);
            if fit != 0 && !awaits_name {
                let of_word = named
                    .iter()
                    .filter(|place| usize::from(**place) / 64 == word);
                let of_word = of_word.fold(0, |all, place| all | 1 << (place % 64));
                fit &= any_name[word] | of_word;
            }
            fit
        };
        (0..self.words).flat_map(move |word| {
            let mut left = fit(word);
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(word * 64 + bit)
            })
        })
    }
}

impl ByNumber {
    /// Builds the table from the first number of each range and its set, in ascending order.
    fn of(sets: impl Iterator<Item = (u128, Set)>) -> Self {
        let mut known: HashMap<Set, u32> = HashMap::new();
        let mut by_number = Self::default();
        for (start, set) in sets {
            let place = *known.entry(set).or_insert_with_key(|set| {
                by_number.sets.push(set.clone());
                by_number.sets.len() as u32 - 1
            });
            if by_number.starts.last().is_none_or(|last| last.1 != place) {
                by_number.starts.push((start, place));
            }
        }
        by_number
    }

    /// Builds the table from the ranges of each rule; `None` for rules without such a condition.
    fn of_ranges(rules: &[Rule], ranges_of: &dyn Fn(&Conditions) -> Option<&Ranges>) -> Self {
        // The numbers at which a rule starts or stops matching.
        let mut turns: Vec<(u128, usize)> = Vec::new();
        for (place, rule) in rules.iter().enumerate() {
            for (first, last) in ranges_of(&rule.when).into_iter().flat_map(Ranges::iter) {
                turns.push((first, place));
                turns.extend(last.checked_add(1).map(|behind| (behind, place)));
            }
        }
        turns.sort_unstable();
        let mut set = those(rules, |it| ranges_of(it).is_none());
        let mut sets = vec![(0, set.clone())];
        for turns in turns.chunk_by(|a, b| a.0 == b.0) {
            for (_, place) in turns {
                set[place / 64] ^= 1 << (place % 64);
            }
            sets.push((turns[0].0, set.clone()));
        }
        Self::of(sets.into_iter())
    }

    fn at(&self, number: u128) -> &[u64] {
        let behind = self.starts.partition_point(|(start, _)| *start <= number);
        let (_, place) = self.starts[behind - 1];
        &self.sets[place as usize]
    }
}

impl Applications {
    fn new(rules: &[Rule]) -> Self {
        let any = those(rules, |it| it.application.is_empty());
        let mut sets = Self {
            any: any.clone(),
            ..Self::default()
        };
        for (place, rule) in rules.iter().enumerate() {
            let (parts, whole) = rule.when.application.numbers();
            for part in parts {
                put(sets.parts.entry(part).or_insert_with(|| any.clone()), place);
            }
            for whole in whole {
                put(
                    sets.whole.entry(*whole).or_insert_with(|| any.clone()),
                    place,
                );
            }
        }
        sets
    }

    /// Sets whose union contains every rule that the application may match.
    fn of<'a>(&'a self, facts: &Facts<'_>, all: &'a Set) -> [&'a [u64]; 3] {
        let found = facts.application();
        let is_final = facts.progress == Progress::Complete
            || facts.progress == Progress::Known && found.has_two_parts();
        if !is_final {
            return [all; 3];
        }
        let (carrier, own) = Application::parts(found.number);
        let part = |part: u16| self.parts.get(&part).unwrap_or(&self.any);
        let whole = self.whole.get(&Application::joined(carrier, own));
        let carrier = match carrier {
            0 => &self.any,
            carrier => part(carrier),
        };
        [part(own), carrier, whole.unwrap_or(&self.any)]
    }
}

impl Names {
    fn new(rules: &[Rule]) -> Self {
        let mut names = Self {
            any: those(rules, |it| it.server_name.is_empty()),
            ..Self::default()
        };
        for (place, rule) in rules.iter().enumerate() {
            let [whole, below] = rule.when.server_name.patterns();
            let place = place as u16;
            for name in whole {
                names.whole.entry(name.clone()).or_default().push(place);
            }
            for name in below {
                names.below.entry(name.clone()).or_default().push(place);
            }
        }
        names
    }

    /// The rules that ask for the flow's server name; `None` if any rule with a server name may
    /// still match.
    fn of(&self, facts: &Facts<'_>) -> Option<Vec<u16>> {
        let mut places = Vec::new();
        let Some(name) = facts.server_name else {
            return (facts.progress == Progress::Complete).then_some(places);
        };
        if self.whole.is_empty() && self.below.is_empty() {
            return Some(places);
        }
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        places.extend(self.whole.get(&name).into_iter().flatten());
        if !self.below.is_empty() {
            for (at, _) in name.match_indices('.') {
                places.extend(self.below.get(&name[at + 1..]).into_iter().flatten());
            }
        }
        Some(places)
    }
}
