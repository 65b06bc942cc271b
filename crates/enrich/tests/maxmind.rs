// SPDX-License-Identifier: Apache-2.0
//! Writes small databases in MaxMind's format, version 2.0
//! (<https://maxmind.github.io/MaxMind-DB/>).

/// A value of a record.
pub(crate) enum Item<'a> {
    Text(&'a str),
    Short(u16),
    Number(u32),
    Long(u64),
    NoTexts,
    Map(Vec<(&'a str, Item<'a>)>),
}

impl Item<'_> {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::Text(text) => {
                let length = text.len() as u8;
                match length {
                    0..29 => to.push(2 << 5 | length),
                    _ => to.extend([2 << 5 | 29, length - 29]),
                }
                to.extend(text.as_bytes());
            }
            Self::Number(number) => {
                to.push(6 << 5 | 4);
                to.extend(number.to_be_bytes());
            }
            Self::Short(number) => {
                to.push(5 << 5 | 2);
                to.extend(number.to_be_bytes());
            }
            // An extended type: its number minus 7, in an octet of its own.
            Self::Long(number) => {
                to.extend([8, 2]);
                to.extend(number.to_be_bytes());
            }
            // A list, which is an extended type, too.
            Self::NoTexts => to.extend([0, 4]),
            Self::Map(entries) => {
                to.push(7 << 5 | entries.len() as u8);
                for (key, value) in entries {
                    Item::Text(key).put(to);
                    value.put(to);
                }
            }
        }
    }
}

/// A database of IPv4 networks: an address, a prefix length, and the entry for the network.
pub(crate) fn database(kind: &str, networks: &[([u8; 4], u8, Item<'_>)]) -> Vec<u8> {
    // A child is another node or an entry; `Nothing` means that there is no entry.
    let mut nodes: Vec<[Child; 2]> = vec![[Child::Nothing; 2]];
    let mut entries = Vec::new();
    for (address, length, item) in networks {
        let bits = u32::from_be_bytes(*address);
        let mut node = 0;
        for depth in 0..*length {
            let side = (bits >> (31 - depth) & 1) as usize;
            if depth + 1 == *length {
                nodes[node][side] = Child::Entry(entries.len());
                break;
            }
            node = match nodes[node][side] {
                Child::Node(next) => next,
                _ => {
                    nodes.push([Child::Nothing; 2]);
                    let next = nodes.len() - 1;
                    nodes[node][side] = Child::Node(next);
                    next
                }
            };
        }
        item.put(&mut entries);
    }
    let count = nodes.len();
    let mut bytes = Vec::new();
    for child in nodes.iter().flatten() {
        let place = match child {
            Child::Nothing => count,
            Child::Node(node) => *node,
            Child::Entry(at) => count + 16 + at,
        };
        bytes.extend(&(place as u32).to_be_bytes()[1..]);
    }
    bytes.extend([0; 16]);
    bytes.extend(entries);
    bytes.extend(b"\xab\xcd\xefMaxMind.com");
    let short = |name, number| (name, Item::Short(number));
    let about = Item::Map(vec![
        short("binary_format_major_version", 2),
        short("binary_format_minor_version", 0),
        ("build_epoch", Item::Long(1_700_000_000)),
        ("database_type", Item::Text(kind)),
        ("description", Item::Map(Vec::new())),
        ("languages", Item::NoTexts),
        short("ip_version", 4),
        ("node_count", Item::Number(count as u32)),
        short("record_size", 24),
    ]);
    about.put(&mut bytes);
    bytes
}

#[derive(Clone, Copy)]
enum Child {
    Nothing,
    Node(usize),
    Entry(usize),
}
