// SPDX-License-Identifier: Apache-2.0
//! Resolves values of the rules file to what flows are compared with. Each result includes the
//! canonical name of the value.

use std::sync::Arc;

use turboflow_record::{
    ApplicationNames, NameIndex, Network, did_you_mean, protocol_name, protocol_names,
    protocol_number, shorten,
};

use super::facts::Application;
use super::fault::RulesFault;
use super::file::{Entry, Key};

/// Resolves names; `None` without inspection.
pub(super) struct Resolver {
    names: Option<(Arc<ApplicationNames>, NameIndex)>,
}

/// Maximum length of a server name in DNS, in bytes.
const MAX_SERVER_NAME_BYTES: usize = 253;

type Resolved<T> = Result<(T, String), RulesFault>;

impl Resolver {
    pub(super) fn new(names: Option<&ApplicationNames>) -> Self {
        let with_index = |names: &ApplicationNames| {
            let names = Arc::new(names.clone());
            (Arc::clone(&names), NameIndex::new(names))
        };
        Self {
            names: names.map(with_index),
        }
    }

    fn names(&self, key: Key) -> Result<&(Arc<ApplicationNames>, NameIndex), RulesFault> {
        self.names
            .as_ref()
            .ok_or(RulesFault::NotInspected(key.name()))
    }

    /// An application by name, by the names of carrier and application (`TLS.NetFlix`), or by
    /// number.
    pub(super) fn application(&self, entry: &Entry) -> Resolved<u32> {
        let (names, index) = self.names(Key::Application)?;
        let applications = &names.applications;
        let all = || {
            applications
                .iter()
                .map(|(number, name, _)| (*number, name.as_str()))
        };
        let one = |text: &str| find(all(), text);
        let text = entry.to_string();
        let two = || {
            let mut points = text.match_indices('.');
            points.find_map(|(at, _)| {
                let parts = (one(&text[..at])?, one(&text[at + 1..])?);
                let (carrier, own) = (parts.0.try_into().ok()?, parts.1.try_into().ok()?);
                Some(Application::joined(carrier, own))
            })
        };
        // Numbers of two parts are not in the library's list.
        let joined = || {
            let (carrier, own) = Application::parts(text.parse().ok()?);
            let is_known = |part: u16| applications.iter().any(|it| it.0 == u32::from(part));
            (carrier != 0 && is_known(carrier) && is_known(own))
                .then(|| Application::joined(carrier, own))
        };
        let found = one(&text).or_else(two).or_else(joined);
        let found = found.ok_or_else(|| unknown("application", &text, all().map(|it| it.1)))?;
        Ok((found, index.application(found).into_owned()))
    }

    /// A category by its name or number.
    pub(super) fn category(&self, entry: &Entry) -> Resolved<u8> {
        let (names, _) = self.names(Key::Category)?;
        small("category", &names.categories, entry)
    }

    /// A risk by its name or number, as a bit.
    pub(super) fn risk(&self, entry: &Entry) -> Resolved<u64> {
        let (names, _) = self.names(Key::Risk)?;
        let (bit, name) = small("risk", &names.risks, entry)?;
        Ok((1_u64.checked_shl(bit.into()).unwrap_or(0), name))
    }
}

/// An 8-bit number by its name.
fn small(kind: &'static str, names: &[(u8, String)], entry: &Entry) -> Resolved<u8> {
    let all = || {
        names
            .iter()
            .map(|(number, name)| (u32::from(*number), name.as_str()))
    };
    let text = entry.to_string();
    let number = find(all(), &text).and_then(|number| u8::try_from(number).ok());
    let number = number.ok_or_else(|| unknown(kind, &text, all().map(|it| it.1)))?;
    let name = names.iter().find(|(its, _)| *its == number);
    Ok((number, name.map_or(text, |(_, name)| name.clone())))
}

/// The number that has the name, or the number itself if it has a name. Case is ignored unless
/// several names differ only in case.
fn find<'a>(names: impl Iterator<Item = (u32, &'a str)> + Clone, text: &str) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    let mut exact = names.clone().filter(|(_, name)| *name == text);
    if let Some((number, _)) = exact.next() {
        return Some(number);
    }
    if let Ok(number) = text.parse::<u32>() {
        return names
            .clone()
            .any(|(its, _)| its == number)
            .then_some(number);
    }
    let mut similar = names.filter(|(_, name)| name.eq_ignore_ascii_case(text));
    let (number, name) = similar.next()?;
    similar.all(|(_, other)| other == name).then_some(number)
}

fn unknown<'a>(kind: &'static str, name: &str, names: impl Iterator<Item = &'a str>) -> RulesFault {
    RulesFault::UnknownName {
        kind,
        name: shorten(name),
        hint: did_you_mean(name, names),
    }
}

/// An IP protocol by its name or number.
pub(super) fn protocol(entry: &Entry) -> Resolved<u8> {
    let text = entry.to_string();
    let number = match entry {
        Entry::Number(number) => u64::try_from(*number).ok(),
        Entry::Text(name) => protocol_number(name).or_else(|| name.parse().ok()),
    };
    match number.and_then(|number| u8::try_from(number).ok()) {
        Some(number) => {
            let name = protocol_name(number.into()).map_or(text, str::to_owned);
            Ok((number, name))
        }
        None => Err(RulesFault::UnknownProtocol {
            name: shorten(&text),
            hint: did_you_mean(&text, protocol_names()),
        }),
    }
}

/// A port, or a range of ports.
pub(super) fn ports(entry: &Entry) -> Resolved<(u128, u128)> {
    let text = entry.to_string();
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    let port = |digits: &str| {
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse::<u16>().ok();
        number.filter(|number| is_plain && *number > 0)
    };
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(((first.into(), last.into()), text)),
        _ => Err(RulesFault::BadPort(shorten(&text))),
    }
}

/// A network, or the address of a host.
pub(super) fn network(entry: &Entry) -> Resolved<Network> {
    let text = entry.to_string();
    let bad = || RulesFault::BadNetwork(shorten(&text));
    let network = Network::parse(&text).ok_or_else(bad)?;
    if network.address() != network.first() {
        return Err(RulesFault::BitsBehindPrefix {
            written: shorten(&text),
            network: network.to_string(),
            host: network.address().to_string(),
        });
    }
    Ok((network, network.to_string()))
}

/// A server name, or `*.` followed by a domain.
pub(super) fn server_name(entry: &Entry) -> Resolved<String> {
    let Entry::Text(text) = entry else {
        return Err(RulesFault::BadServerName(entry.to_string()));
    };
    let name = text.strip_suffix('.').unwrap_or(text);
    let labels = name.strip_prefix("*.").unwrap_or(name);
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    match labels.split('.').all(is_label) && labels.len() <= MAX_SERVER_NAME_BYTES {
        true => Ok((name.to_owned(), name.to_ascii_lowercase())),
        false => Err(RulesFault::BadServerName(shorten(text))),
    }
}
