// SPDX-License-Identifier: Apache-2.0
//! The user's choices, and the effects of keys.

use crate::bins::{AVERAGE_BINS, BINS_A_SECOND, Measured};
use crate::filter::FlowFilter;
use crate::picture::{ApplicationRow, FlowRow, HostRow, Picture, ShareRow};

/// The views.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Flows.
    #[default]
    Flows,
    /// Hosts.
    Hosts,
    /// Protocols and ports.
    Protocols,
    /// The state of the meter.
    Health,
    /// Applications, if packets are inspected.
    Applications,
}

impl View {
    /// All views, in the order of their keys.
    pub const ALL: [Self; 5] = [
        Self::Flows,
        Self::Hosts,
        Self::Protocols,
        Self::Health,
        Self::Applications,
    ];

    /// The view's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flows => "flows",
            Self::Hosts => "hosts",
            Self::Protocols => "protocols",
            Self::Health => "health",
            Self::Applications => "applications",
        }
    }
}

/// The sort order; the largest come first, names in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Bits a second in the last interval.
    #[default]
    Bits,
    /// Packets a second in the last interval.
    Packets,
    /// Bits a second in the last 10 s.
    Average,
    /// Total bytes.
    Total,
    /// Address and port, protocol.
    Name,
}

impl Sort {
    /// All orders, in the sequence of the key `s`.
    pub const ALL: [Self; 5] = [
        Self::Bits,
        Self::Packets,
        Self::Average,
        Self::Total,
        Self::Name,
    ];

    /// The name of the order.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bits => "bits",
            Self::Packets => "packets",
            Self::Average => "average",
            Self::Total => "total",
            Self::Name => "name",
        }
    }

    const fn weight(self, measured: &Measured) -> u64 {
        match self {
            Self::Bits => measured.now.bits,
            Self::Packets => measured.now.packets,
            Self::Average => measured.average.bits,
            Self::Total => measured.total.bytes,
            Self::Name => 0,
        }
    }
}

/// A key, independent of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Removes the last typed character.
    Backspace,
    /// The previous view.
    BackTab,
    /// A printable character.
    Char(char),
    /// One line down.
    Down,
    /// To the last rows.
    End,
    /// Accepts the typed filter.
    Enter,
    /// Cancels the typed filter.
    Escape,
    /// To the first rows.
    Home,
    /// Ctrl-C.
    Interrupt,
    /// One page down.
    PageDown,
    /// One page up.
    PageUp,
    /// The next view.
    Tab,
    /// One line up.
    Up,
}

/// The source of the packets, for the first line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// `eth0`, `office.pcap`.
    pub name: String,
    /// A remark, such as `10x` or `at its end`.
    pub state: String,
}

/// The user's choices.
#[derive(Clone, Debug)]
pub struct Screen {
    /// The view.
    pub view: View,
    /// Whether records have an application.
    pub has_applications: bool,
    /// The sort order.
    pub sort: Sort,
    /// Whether the order is reversed: smallest first.
    pub is_reversed: bool,
    /// Number of bins in the interval.
    pub interval: u64,
    /// Whether the picture is frozen.
    pub is_paused: bool,
    /// Whether the help is shown.
    pub is_help: bool,
    /// Number of rows above the first one shown.
    pub scroll: usize,
    /// The current filter, with its text.
    pub filter: Option<(String, FlowFilter)>,
    /// The filter being typed after `/`.
    pub typing: Option<String>,
    /// A message, shown on the last line instead of the keys.
    pub message: Option<String>,
}

/// Maximum length of a filter.
const FILTER_MAX: usize = 500;
/// The intervals for the keys + and -, in seconds.
const INTERVALS: [u64; 4] = [1, 2, 5, AVERAGE_BINS / BINS_A_SECOND];
/// Rows of a page, if the height of the screen is unknown.
const PAGE: usize = 10;

impl Default for Screen {
    fn default() -> Self {
        Self {
            view: View::default(),
            has_applications: false,
            sort: Sort::default(),
            is_reversed: false,
            interval: BINS_A_SECOND,
            is_paused: false,
            is_help: false,
            scroll: 0,
            filter: None,
            typing: None,
            message: None,
        }
    }
}

impl Screen {
    /// Applies a key. Returns whether the program should end.
    pub fn press(&mut self, key: Key) -> bool {
        if key == Key::Interrupt {
            return true;
        }
        self.message = None;
        if let Some(text) = self.typing.take() {
            self.type_filter(text, key);
            return false;
        }
        if self.is_help {
            self.is_help = false;
            return key == Key::Char('q');
        }
        match key {
            Key::Char('q') => return true,
            Key::Char('p' | ' ') => self.is_paused = !self.is_paused,
            Key::Char('?' | 'h') => self.is_help = true,
            Key::Char('/') => {
                let known = self.filter.as_ref().map(|(text, _)| text.clone());
                self.typing = Some(known.unwrap_or_default());
            }
            Key::Char('r') => self.is_reversed = !self.is_reversed,
            Key::Char('s') => self.sort_by(1),
            Key::Char('S') => self.sort_by(Sort::ALL.len() - 1),
            Key::Char('+') => self.change_interval(|known, chosen| known > chosen),
            Key::Char('-') => self.change_interval(|known, chosen| known < chosen),
            Key::Char(digit @ '1'..='5') => self.show_number(digit as usize - '1' as usize),
            Key::Tab => self.step(1),
            Key::BackTab => self.step(self.views().len() - 1),
            Key::Escape => self.filter = None,
            _ => self.scroll_by(key),
        }
        false
    }

    /// Sets the filter from its text; an empty text removes it.
    ///
    /// # Errors
    /// A one-line description of what is wrong in the filter.
    pub fn set_filter(&mut self, text: &str) -> Result<(), String> {
        let text = text.trim();
        if text.is_empty() {
            self.filter = None;
            return Ok(());
        }
        let filter = FlowFilter::parse(text).map_err(|error| {
            let words = error.to_string();
            let first = words.lines().next().unwrap_or_default();
            // The prompt already says that this is the filter.
            first.strip_prefix("filter: ").unwrap_or(first).to_owned()
        })?;
        self.filter = Some((text.to_owned(), filter));
        self.scroll = 0;
        Ok(())
    }

    fn type_filter(&mut self, mut text: String, key: Key) {
        match key {
            Key::Escape => return,
            Key::Enter => {
                if let Err(reason) = self.set_filter(&text) {
                    self.message = Some(reason);
                    self.typing = Some(text);
                }
                return;
            }
            Key::Backspace => {
                text.pop();
            }
            Key::Char(letter) if text.len() < FILTER_MAX => text.push(letter),
            _ => {}
        }
        self.typing = Some(text);
    }

    /// The views that are available.
    #[must_use]
    pub fn views(&self) -> &'static [View] {
        match self.has_applications {
            true => &View::ALL,
            false => &View::ALL[..View::ALL.len() - 1],
        }
    }

    fn show_number(&mut self, number: usize) {
        match self.views().get(number) {
            Some(view) => self.show(*view),
            None => {
                self.message =
                    Some("packets are not inspected, so there are no applications".to_owned())
            }
        }
    }

    fn step(&mut self, by: usize) {
        let views = self.views();
        let at = views.iter().position(|view| *view == self.view);
        self.show(views[(at.unwrap_or_default() + by) % views.len()]);
    }

    fn show(&mut self, view: View) {
        self.view = view;
        self.scroll = 0;
    }

    fn sort_by(&mut self, step: usize) {
        let at = Sort::ALL.iter().position(|sort| *sort == self.sort);
        self.sort = Sort::ALL[(at.unwrap_or_default() + step) % Sort::ALL.len()];
        self.scroll = 0;
    }

    /// Changes the interval to the nearest one for which `is_beyond` holds.
    fn change_interval(&mut self, is_beyond: impl Fn(u64, u64) -> bool) {
        let beyond = INTERVALS
            .map(|seconds| seconds * BINS_A_SECOND)
            .into_iter()
            .filter(|bins| is_beyond(*bins, self.interval));
        let nearest = beyond.min_by_key(|bins| bins.abs_diff(self.interval));
        self.interval = nearest.unwrap_or(self.interval);
    }

    fn scroll_by(&mut self, key: Key) {
        self.scroll = match key {
            Key::Down | Key::Char('j') => self.scroll.saturating_add(1),
            Key::Up | Key::Char('k') => self.scroll.saturating_sub(1),
            Key::PageDown => self.scroll.saturating_add(PAGE),
            Key::PageUp => self.scroll.saturating_sub(PAGE),
            Key::Home => 0,
            Key::End => usize::MAX,
            _ => self.scroll,
        };
    }

    /// Applies the filter to a picture and sorts its rows.
    #[must_use]
    pub fn arrange(&self, picture: &Picture) -> Picture {
        let mut shown = match &self.filter {
            Some((_, filter)) => picture.filtered(filter),
            None => picture.clone(),
        };
        self.order(&mut shown.flows, |flow| (flow.measured, flow.key));
        self.order(&mut shown.hosts, |host| (host.both(), host.address));
        let share = |row: &ShareRow| (row.measured, (row.protocol, row.port));
        self.order(&mut shown.protocols, share);
        self.order(&mut shown.ports, share);
        let name = |row: &ApplicationRow| (row.measured, row.name.to_string());
        self.order(&mut shown.applications, name);
        shown
    }

    /// Sorts the largest first. Ties are broken by totals and names, so that rows do not jump.
    fn order<R, N: Ord>(&self, rows: &mut [R], of: impl Fn(&R) -> (Measured, N)) {
        rows.sort_unstable_by(|left, right| {
            let ((left, left_name), (right, right_name)) = (of(left), of(right));
            let weight = |measured: &Measured| (self.sort.weight(measured), measured.total.bytes);
            let by_name = left_name.cmp(&right_name);
            let order = match self.sort {
                Sort::Name => by_name,
                _ => weight(&right).cmp(&weight(&left)).then(by_name),
            };
            if self.is_reversed {
                order.reverse()
            } else {
                order
            }
        });
    }
}

impl FlowRow {
    /// How long the flow has been in the table at `end_ns`.
    #[must_use]
    pub const fn age_ns(&self, end_ns: u64) -> u64 {
        end_ns.saturating_sub(self.first_ns)
    }
}

impl HostRow {
    /// Whether the host had no traffic in the intervals shown.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.both().now.packets == 0
    }
}
