// SPDX-License-Identifier: Apache-2.0
//! Texts that records refer to by number: server names, fingerprints, names in DNS queries.
//!
//! A record has words of 64 bits, so it holds the *number* of a text in a table. The table is
//! bounded and drops the oldest texts first. If a text is seen again while its entry is in the
//! older half, it gets a new number. Its old number still resolves until that entry is dropped. So
//! no references have to be counted or released: the number in a record resolves if no more than
//! half of the table has been filled since the text was last seen.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The longest text, in bytes. A longer one is cut.
pub const MAX_TEXT_BYTES: usize = 255;

/// What an entry takes in addition to its text, roughly, in bytes: its places in the order and in
/// the index.
const ENTRY_BYTES: usize = 96;

/// A bounded table of texts. All threads of a run share it. It is not accessed for every packet.
#[derive(Debug)]
pub struct Texts {
    table: Mutex<Table>,
}

/// Totals of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextCounters {
    /// Texts in the table now. A text with a new number counts twice while its old entry remains.
    pub texts: u64,
    /// Memory that the entries take now, in bytes.
    pub bytes: u64,
    /// Texts that were cut to [`MAX_TEXT_BYTES`].
    pub cut: u64,
    /// Texts that were dropped from the table.
    pub fallen_out: u64,
    /// Numbers that were looked up after their text had been dropped.
    pub missed: u64,
}

#[derive(Debug)]
struct Table {
    limit_bytes: u64,
    /// In order of their numbers.
    entries: VecDeque<Entry>,
    /// The number of the first entry. Numbers start at 1: no text has the number 0.
    first: u64,
    /// The latest number of each text.
    latest: HashMap<Arc<str>, u64>,
    /// Memory that all entries have taken so far, including dropped ones.
    taken_bytes: u64,
    counters: TextCounters,
}

#[derive(Debug)]
struct Entry {
    text: Arc<str>,
    /// [`Table::taken_bytes`] before this entry.
    before_bytes: u64,
}

impl Texts {
    /// A table of at most `limit_bytes`. Memory is taken only as texts arrive.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            table: Mutex::new(Table {
                // There is always room for one text.
                limit_bytes: limit_bytes.max(ENTRY_BYTES + MAX_TEXT_BYTES) as u64,
                entries: VecDeque::new(),
                first: 1,
                latest: HashMap::new(),
                taken_bytes: 0,
                counters: TextCounters::default(),
            }),
        }
    }

    /// The number of a text, which is never 0. Characters that a terminal or a file could misread
    /// are escaped (`\x1b`, `\u{202e}`). A text longer than [`MAX_TEXT_BYTES`] is cut.
    pub fn intern(&self, text: &str) -> u64 {
        let (text, is_cut) = shortened(clean(text));
        let mut table = self.lock();
        table.counters.cut += u64::from(is_cut);
        table.number(&text)
    }

    /// [`Texts::intern`] for bytes that need not be UTF-8.
    pub fn intern_bytes(&self, text: &[u8]) -> u64 {
        let mut whole = String::new();
        for part in text.utf8_chunks() {
            whole.push_str(part.valid());
            let escapes = part.invalid().iter().map(|byte| format!("\\x{byte:02x}"));
            whole.extend(escapes);
        }
        self.intern(&whole)
    }

    /// The text with this number. `None` if it was dropped, or if no text ever had this number.
    #[must_use]
    pub fn resolve(&self, number: u64) -> Option<Arc<str>> {
        self.lock().text(number).map(Arc::clone)
    }

    /// Calls `take` with the text of each of these numbers, as [`Texts::resolve`] returns it.
    /// Absent numbers have no text.
    pub fn resolve_each(
        &self,
        numbers: impl IntoIterator<Item = Option<u64>>,
        mut take: impl FnMut(Option<&str>),
    ) {
        let mut table = self.lock();
        for number in numbers {
            take(number.and_then(|number| table.text(number).map(|text| &**text)));
        }
    }

    /// Totals so far.
    #[must_use]
    pub fn counters(&self) -> TextCounters {
        let table = self.lock();
        TextCounters {
            texts: table.entries.len() as u64,
            bytes: table.held_bytes(),
            ..table.counters
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // The table is consistent wherever a panic could occur.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn number(&mut self, text: &str) -> u64 {
        let known = self.latest.get_key_value(text);
        let known = known.map(|(text, number)| (Arc::clone(text), *number));
        let text = match known {
            Some((_, number)) if self.is_recent(number) => return number,
            Some((text, _)) => text,
            None => Arc::from(text),
        };
        let number = self.first + self.entries.len() as u64;
        self.latest.insert(Arc::clone(&text), number);
        let before_bytes = self.taken_bytes;
        self.taken_bytes += cost_bytes(&text);
        self.entries.push_back(Entry { text, before_bytes });
        while self.held_bytes() > self.limit_bytes {
            self.forget_oldest();
        }
        number
    }

    /// Whether at most half of the table has been filled since this entry.
    fn is_recent(&self, number: u64) -> bool {
        let entry = self.entry(number);
        entry.is_some_and(|entry| self.taken_bytes - entry.before_bytes <= self.limit_bytes / 2)
    }

    fn held_bytes(&self) -> u64 {
        let oldest = self.entries.front();
        oldest.map_or(0, |entry| self.taken_bytes - entry.before_bytes)
    }

    fn forget_oldest(&mut self) {
        let Some(entry) = self.entries.pop_front() else {
            return;
        };
        if self.latest.get(&entry.text) == Some(&self.first) {
            self.latest.remove(&entry.text);
        }
        self.first += 1;
        self.counters.fallen_out += 1;
    }

    fn entry(&self, number: u64) -> Option<&Entry> {
        let place = number.checked_sub(self.first)?;
        self.entries.get(usize::try_from(place).ok()?)
    }

    fn text(&mut self, number: u64) -> Option<&Arc<str>> {
        if self.entry(number).is_none() {
            self.counters.missed += 1;
        }
        self.entry(number).map(|entry| &entry.text)
    }
}

fn cost_bytes(text: &str) -> u64 {
    (ENTRY_BYTES + text.len()) as u64
}

/// The text with every invisible character escaped, such as `\x1b` and `\u{202e}`. Texts come from
/// packets and are shown on terminals.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\0'..' ' | '\x7f' => cleaned.push_str(&format!("\\x{:02x}", u32::from(character))),
            character if is_invisible(character) => {
                cleaned.push_str(&format!("\\u{{{:x}}}", u32::from(character)));
            }
            character => cleaned.push(character),
        }
    }
    Cow::Owned(cleaned)
}

/// Control characters, line separators, and marks that change the direction of writing.
const fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{80}'..='\u{9f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The text cut at the last character boundary within [`MAX_TEXT_BYTES`], and whether it was
/// longer.
pub(crate) fn shortened(text: Cow<'_, str>) -> (Cow<'_, str>, bool) {
    if text.len() <= MAX_TEXT_BYTES {
        return (text, false);
    }
    let mut ends = (0..=MAX_TEXT_BYTES).rev();
    let end = ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    (Cow::Owned(text[..end].to_owned()), true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_keeps_its_number_while_it_is_recent() {
        let texts = Texts::new(1 << 20);
        let number = texts.intern("example.org");
        assert_eq!(number, 1);
        assert_eq!(texts.intern("example.net"), 2);
        assert_eq!(texts.intern("example.org"), number);
        assert_eq!(texts.resolve(number).as_deref(), Some("example.org"));
        assert_eq!(texts.resolve(0), None);
        assert_eq!(texts.resolve(3), None);
        assert_eq!(texts.counters().missed, 2);
    }

    #[test]
    fn an_old_text_is_renewed_and_its_old_number_still_resolves() {
        let texts = Texts::new(20 * (ENTRY_BYTES + 1));
        let old = texts.intern("a");
        for letter in 'b'..='n' {
            texts.intern(&letter.to_string());
        }
        let new = texts.intern("a");
        assert!(new > old, "it was among the older half");
        for number in [old, new] {
            assert_eq!(texts.resolve(number).as_deref(), Some("a"));
        }
        for letter in 'A'..='M' {
            texts.intern(&letter.to_string());
        }
        assert_eq!(texts.resolve(old), None);
        assert_eq!(texts.resolve(new).as_deref(), Some("a"));
        let counters = texts.counters();
        assert_eq!((counters.texts, counters.missed), (20, 1));
        assert_eq!(counters.fallen_out, 8);
    }

    #[test]
    fn texts_are_cleaned_and_cut() {
        let texts = Texts::new(1 << 20);
        let kept = |number| texts.resolve(number).unwrap().to_string();
        assert_eq!(
            kept(texts.intern("a\x1b[2J\n\u{202e}b")),
            "a\\x1b[2J\\x0a\\u{202e}b"
        );
        assert_eq!(kept(texts.intern("bücher.example")), "bücher.example");
        assert_eq!(
            kept(texts.intern_bytes(b"a\xff\xfe.b\x00")),
            "a\\xff\\xfe.b\\x00"
        );
        let long = "ä".repeat(200);
        assert_eq!(kept(texts.intern(&long)), "ä".repeat(127));
        assert_eq!(texts.counters().cut, 1);
    }

    #[test]
    fn threads_agree_on_numbers() {
        let texts = Texts::new(1 << 20);
        let numbers = std::thread::scope(|scope| {
            let names = || {
                (0..500)
                    .map(|n| texts.intern(&format!("host{n}")))
                    .collect::<Vec<_>>()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(names)).collect();
            threads
                .into_iter()
                .map(|it| it.join().unwrap())
                .collect::<Vec<_>>()
        });
        assert!(numbers.iter().all(|its| *its == numbers[0]));
        assert_eq!(texts.counters().texts, 500);
    }

    proptest! {
        /// Compares with a list of all texts ever seen. Whatever resolves is right, a text seen
        /// within half of the limit resolves, and the table never exceeds its limit.
        #[test]
        fn the_bound_holds_and_recent_texts_resolve(
            limit in 400usize..4_000,
            names in prop::collection::vec("[a-d]{0,60}", 1..200),
        ) {
            let texts = Texts::new(limit);
            let mut met: Vec<(u64, String)> = Vec::new();
            for name in names {
                let number = texts.intern(&name);
                prop_assert!(number != 0);
                met.push((number, name));
                prop_assert!(texts.counters().bytes <= limit as u64);
                let kept = texts.lock().latest.len();
                prop_assert!(kept as u64 <= texts.counters().texts);
                let mut since = 0;
                for (number, name) in met.iter().rev() {
                    since += cost_bytes(name);
                    let found = texts.resolve(*number);
                    prop_assert!(found.is_none() || found.as_deref() == Some(name.as_str()));
                    prop_assert!(found.is_some() || since > limit as u64 / 2);
                }
            }
        }
    }
}
