// SPDX-License-Identifier: Apache-2.0
//! Sets of values for conditions. Lists may be long, such as a list of blocked names, so each set
//! is sorted and searched by bisection.

use std::net::IpAddr;

use turboflow_record::Network;

use super::facts::Application;

/// Numbers as sorted ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(Vec<(u128, u128)>);

impl FromIterator<(u128, u128)> for Ranges {
    fn from_iter<I: IntoIterator<Item = (u128, u128)>>(ranges: I) -> Self {
        let mut sorted: Vec<_> = ranges.into_iter().collect();
        sorted.sort_unstable();
        let mut joined: Vec<(u128, u128)> = Vec::with_capacity(sorted.len());
        for (first, last) in sorted {
            match joined.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => joined.push((first, last)),
            }
        }
        Self(joined)
    }
}

impl Ranges {
    /// The range that contains the number; if none does, the next one after it.
    fn at(&self, number: u128) -> Option<(u128, u128)> {
        let place = self.0.partition_point(|(_, last)| *last < number);
        self.0.get(place).copied()
    }

    pub(super) fn has(&self, number: u128) -> bool {
        self.at(number).is_some_and(|(first, _)| first <= number)
    }

    pub(super) fn covers(&self, other: &Self) -> bool {
        let is_within = |(first, last): &(u128, u128)| {
            self.at(*first)
                .is_some_and(|(from, to)| from <= *first && *last <= to)
        };
        other.0.iter().all(is_within)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// First and last number of each range, both inclusive.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u128, u128)> {
        self.0.iter().copied()
    }
}

/// Addresses in networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Networks {
    v4: Ranges,
    v6: Ranges,
}

pub(super) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl Networks {
    pub(super) fn new(networks: &[Network]) -> Self {
        let ranges = |is_v4: bool| {
            let of_family = networks
                .iter()
                .filter(move |network| network.address().is_ipv4() == is_v4);
            of_family
                .map(|network| (number(network.first()), number(network.last())))
                .collect()
        };
        Self {
            v4: ranges(true),
            v6: ranges(false),
        }
    }

    pub(super) fn has(&self, address: IpAddr) -> bool {
        let ranges = match address {
            IpAddr::V4(_) => &self.v4,
            IpAddr::V6(_) => &self.v6,
        };
        ranges.has(number(address))
    }

    pub(super) fn covers(&self, other: &Self) -> bool {
        self.v4.covers(&other.v4) && self.v6.covers(&other.v6)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// The addresses of one family, as numbers.
    pub(super) const fn of_family(&self, is_v4: bool) -> &Ranges {
        match is_v4 {
            true => &self.v4,
            false => &self.v6,
        }
    }

    /// Whether one packet can have addresses from both sets.
    pub(super) const fn share_family(&self, other: &Self) -> bool {
        let v4 = !self.v4.is_empty() && !other.v4.is_empty();
        v4 || !self.v6.is_empty() && !other.v6.is_empty()
    }
}

/// Server names, ignoring case: complete names, and all names below a domain (`*.example.com`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerNames {
    whole: Vec<String>,
    below: Vec<String>,
}

impl ServerNames {
    /// The patterns must have been checked.
    pub(super) fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names = Self::default();
        for pattern in patterns {
            let lower = pattern.to_ascii_lowercase();
            match lower.strip_prefix("*.") {
                Some(parent) => names.below.push(parent.to_owned()),
                None => names.whole.push(lower),
            }
        }
        names.whole.sort_unstable();
        names.below.sort_unstable();
        names
    }

    pub(super) fn has(&self, name: &str) -> bool {
        // A fully qualified name may end in a dot.
        let name = name.strip_suffix('.').unwrap_or(name);
        contains(&self.whole, name) || self.has_parent(name)
    }

    fn has_parent(&self, name: &str) -> bool {
        !self.below.is_empty()
            && name
                .match_indices('.')
                .any(|(at, _)| contains(&self.below, &name[at + 1..]))
    }

    pub(super) fn covers(&self, other: &Self) -> bool {
        let has_all_below =
            |parent: &String| contains(&self.below, parent) || self.has_parent(parent);
        other.whole.iter().all(|name| self.has(name)) && other.below.iter().all(has_all_below)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.below.is_empty()
    }

    /// Complete names, and domains of wildcard patterns; all in lower case.
    pub(super) fn patterns(&self) -> [&[String]; 2] {
        [&self.whole, &self.below]
    }
}

/// Whether a sorted list of lower-case names contains a name, ignoring its case.
fn contains(sorted: &[String], name: &str) -> bool {
    let lower = || name.bytes().map(|byte| byte.to_ascii_lowercase());
    sorted
        .binary_search_by(|known| known.bytes().cmp(lower()))
        .is_ok()
}

/// Applications. A single name matches the application itself or its carrier; two parts must both
/// match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Applications {
    has_unknown: bool,
    parts: Vec<u16>,
    whole: Vec<u32>,
}

impl FromIterator<u32> for Applications {
    /// Numbers with one part or two.
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut set = Self::default();
        for number in numbers {
            match Application::parts(number) {
                (0, 0) => set.has_unknown = true,
                (0, part) => set.parts.push(part),
                (carrier, own) => set.whole.push(Application::joined(carrier, own)),
            }
        }
        set.parts.sort_unstable();
        set.whole.sort_unstable();
        set
    }
}

impl Applications {
    pub(super) fn has(&self, number: u32) -> bool {
        let (carrier, own) = Application::parts(number);
        if own == 0 {
            return self.has_unknown;
        }
        let is_part = |part: u16| self.parts.binary_search(&part).is_ok();
        is_part(own)
            || carrier != 0
                && (is_part(carrier) || {
                    let joined = Application::joined(carrier, own);
                    self.whole.binary_search(&joined).is_ok()
                })
    }

    /// Whether an application that does not match now may still turn into one of these. With only
    /// one part known, the next packet may reveal what it carries.
    pub(super) fn may_have_more_of(&self, number: u32) -> bool {
        let (carrier, own) = Application::parts(number);
        let is_carried = |whole: &u32| Application::parts(*whole).0 == own;
        carrier == 0 && (!self.parts.is_empty() || self.whole.iter().any(is_carried))
    }

    pub(super) fn covers(&self, other: &Self) -> bool {
        let is_part = |part: &u16| self.parts.binary_search(part).is_ok();
        (self.has_unknown || !other.has_unknown)
            && other.parts.iter().all(is_part)
            && other.whole.iter().all(|whole| self.has(*whole))
    }

    /// Single parts, where 0 is the unknown application, and numbers with two parts.
    pub(super) fn numbers(&self) -> (impl Iterator<Item = u16>, &[u32]) {
        let unknown = self.has_unknown.then_some(0);
        (
            unknown.into_iter().chain(self.parts.iter().copied()),
            &self.whole,
        )
    }

    pub(super) const fn is_empty(&self) -> bool {
        !self.has_unknown && self.parts.is_empty() && self.whole.is_empty()
    }
}

/// A set of 8-bit numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bytes([u64; 4]);

impl FromIterator<u8> for Bytes {
    fn from_iter<I: IntoIterator<Item = u8>>(numbers: I) -> Self {
        let mut set = Self::default();
        for number in numbers {
            set.0[usize::from(number / 64)] |= 1 << (number % 64);
        }
        set
    }
}

impl Bytes {
    pub(super) const fn has(self, number: u8) -> bool {
        self.0[(number / 64) as usize] >> (number % 64) & 1 == 1
    }

    pub(super) fn covers(self, other: Self) -> bool {
        self.0.iter().zip(other.0).all(|(own, its)| its & !own == 0)
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0.iter().zip(other.0).any(|(own, its)| own & its != 0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == [0; 4]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        let ranges: Ranges = [(8, 9), (1, 3), (4, 4), (2, 2), (20, u128::MAX)]
            .into_iter()
            .collect();
        assert_eq!(ranges.0, [(1, 4), (8, 9), (20, u128::MAX)]);
        for (number, is_in) in [(0, false), (1, true), (4, true), (5, false), (9, true)] {
            assert_eq!(ranges.has(number), is_in, "{number}");
        }
        assert!(ranges.has(u128::MAX) && !ranges.has(19));
        let within = |first, last| ranges.covers(&[(first, last)].into_iter().collect());
        assert!(within(1, 4) && within(2, 3) && within(30, 40));
        assert!(!within(1, 5) && !within(0, 1) && !within(4, 8) && !within(10, 11));
        assert!(!Ranges::default().has(0));
    }

    #[test]
    fn families_are_apart() {
        let networks = |texts: &[&str]| {
            let networks: Vec<_> = texts.iter().filter_map(|it| Network::parse(it)).collect();
            Networks::new(&networks)
        };
        let zero = networks(&["0.0.0.0/0"]);
        assert!(zero.has("1.2.3.4".parse().unwrap()));
        assert!(!zero.has("::1".parse().unwrap()));
        assert!(!zero.share_family(&networks(&["::/0"])));
        let both = networks(&["10.0.0.0/9", "10.128.0.0/9", "::/0"]);
        assert!(both.share_family(&zero));
        assert!(both.covers(&networks(&["10.0.0.0/8"])));
        assert!(!both.covers(&zero));
    }

    #[test]
    fn names_below_a_name_do_not_include_it() {
        let names = ServerNames::new(["*.Example.com", "b.org"]);
        for (name, is_in) in [
            ("a.example.com", true),
            ("A.B.EXAMPLE.COM.", true),
            ("example.com", false),
            ("notexample.com", false),
            ("B.org", true),
            ("a.b.org", false),
            (".example.com", true),
            ("", false),
            (".", false),
        ] {
            assert_eq!(names.has(name), is_in, "{name}");
        }
        assert!(names.covers(&ServerNames::new(["*.x.example.com", "y.example.com"])));
        assert!(!names.covers(&ServerNames::new(["*.b.org"])));
        assert!(!names.covers(&ServerNames::new(["*.com"])));
    }

    #[test]
    fn an_application_answers_to_its_carrier_and_to_itself() {
        let (tls, netflix, dns) = (91_u16, 133_u16, 5_u16);
        let both = Application::joined(tls, netflix);
        let set = |numbers: &[u32]| numbers.iter().copied().collect::<Applications>();
        assert!(set(&[tls.into()]).has(both) && set(&[netflix.into()]).has(both));
        assert!(set(&[both]).has(both) && !set(&[both]).has(tls.into()));
        assert!(!set(&[dns.into()]).has(both));
        // The carrier alone, in every notation of the library.
        for alone in [91, 91 << 16, 91 << 16 | 91] {
            assert!(set(&[tls.into()]).has(alone) && set(&[alone]).has(tls.into()));
        }
        // The unknown application does not carry other applications.
        assert!(set(&[0]).has(0) && !set(&[0]).has(netflix.into()));
        assert!(!set(&[tls.into()]).has(0));
        assert!(set(&[both]).may_have_more_of(tls.into()));
        assert!(!set(&[both]).may_have_more_of(dns.into()));
        assert!(!set(&[dns.into()]).may_have_more_of(both));
        assert!(set(&[tls.into()]).covers(&set(&[both, tls.into()])));
        assert!(!set(&[both]).covers(&set(&[tls.into()])));
    }

    #[test]
    fn bytes_are_a_set() {
        let set: Bytes = [0, 63, 64, 255].into_iter().collect();
        assert!([0, 63, 64, 255].iter().all(|number| set.has(*number)));
        assert!(!set.has(1) && !set.has(254) && !set.is_empty());
        assert!(set.covers([64].into_iter().collect()));
        assert!(!set.covers([64, 65].into_iter().collect()));
        assert!(set.meets([64, 65].into_iter().collect()) && !set.meets(Bytes::default()));
    }
}
