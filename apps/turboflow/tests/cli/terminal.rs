// SPDX-License-Identifier: Apache-2.0
//! A pseudo-terminal with the program at one end, and an emulated screen at the other.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use turboflow_testing::{PATIENCE, until};

/// Written by the test after the program's last output: a mode that no terminal has.
const END: &[u8] = b"\x1b[?9999h";

/// The program and its screen.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    /// The program's side of the terminal, to read its settings after the program has ended.
    settings: OwnedFd,
    before: Termios,
    output: Receiver<Vec<u8>>,
    /// Output of the program that the emulation has not processed.
    unread: Vec<u8>,
    cells: Vec<Vec<char>>,
    at: (usize, usize),
    /// The length of the longest written line.
    widest: usize,
    /// Whether it shows the alternate screen, without a cursor.
    is_alternate: bool,
    is_cursor_shown: bool,
    /// Whether [`END`] was received.
    is_over: bool,
}

impl Terminal {
    /// Starts a command on a screen of this size.
    pub(crate) fn start(command: &Command, rows: u16, columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        tcsetwinsize(&slave, size(rows, columns)).unwrap();
        let before = tcgetattr(&slave).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        // In a session of its own, because programs use their session's controlling terminal.
        // Otherwise that would be the terminal in which the tests were started.
        let child = Command::new("setsid")
            .arg("--ctty")
            .arg(command.get_program())
            .args(command.get_args())
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let keyboard = File::from(master);
        let mut display = keyboard.try_clone().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(count @ 1..) = display.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            keyboard,
            before,
            settings: slave,
            output,
            unread: Vec::new(),
            cells: vec![vec![' '; columns.into()]; rows.into()],
            at: (0, 0),
            widest: 0,
            is_alternate: false,
            is_cursor_shown: true,
            is_over: false,
        }
    }

    /// Sends key presses.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the size of the window.
    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        self.cells = vec![vec![' '; columns.into()]; rows.into()];
        // The kernel sends SIGWINCH to the program. Only one, because crossterm holds back a key
        // that arrives together with a signal until the next key.
        tcsetwinsize(&self.settings, size(rows, columns)).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the screen meets a condition.
    #[track_caller]
    pub(crate) fn wait(&mut self, what: &str, is_wanted: impl Fn(&str) -> bool) {
        while !is_wanted(&self.text()) {
            let bytes = self.output.recv_timeout(PATIENCE);
            let bytes = bytes.unwrap_or_else(|_| panic!("never {what}:\n{}", self.text()));
            self.show(&bytes);
        }
    }

    /// Waits until the screen shows these words.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, words: &str) {
        self.wait(words, |text| text.contains(words));
    }

    /// The text on the screen.
    pub(crate) fn text(&self) -> String {
        let lines = self
            .cells
            .iter()
            .map(|line| line.iter().collect::<String>());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The length of the longest written line. A real terminal would have wrapped it at its own
    /// width.
    pub(crate) fn widest(&self) -> usize {
        self.widest
    }

    /// Waits for the end. Checks that the terminal is restored, and returns the exit code.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> i32 {
        let mut status = None;
        until("the program ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let code = status.and_then(|status| status.code());
        // A mark after everything that the program wrote.
        File::from(self.settings.try_clone().unwrap())
            .write_all(END)
            .unwrap();
        while !self.is_over {
            let bytes = self.output.recv_timeout(PATIENCE).unwrap();
            self.show(&bytes);
        }
        assert!(!self.is_alternate, "the program left the alternate screen");
        assert!(self.is_cursor_shown, "the cursor is shown");
        let after = tcgetattr(&self.settings).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(after.input_modes, self.before.input_modes);
        assert_eq!(after.output_modes, self.before.output_modes);
        code.unwrap_or_else(|| panic!("a signal ended it:\n{}", self.text()))
    }

    /// Emulates the parts of a terminal that the program uses: text, positions, the alternate
    /// screen, and the cursor.
    fn show(&mut self, bytes: &[u8]) {
        self.unread.extend(bytes);
        let unread = std::mem::take(&mut self.unread);
        let whole = match std::str::from_utf8(&unread) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = std::str::from_utf8(&unread[..whole]).unwrap();
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            if letter != '\x1b' {
                self.put(letter);
                rest = &rest[letter.len_utf8()..];
                continue;
            }
            let Some(end) = rest
                .char_indices()
                .skip(2)
                .find(|(_, c)| ('@'..='~').contains(c))
            else {
                break;
            };
            self.escape(&rest[1..end.0], end.1);
            rest = &rest[end.0 + 1..];
        }
        self.unread = unread[whole - rest.len()..].to_vec();
    }

    fn put(&mut self, letter: char) {
        match letter {
            '\r' => self.at.1 = 0,
            '\n' => self.at.0 += 1,
            _ => {
                let (row, column) = self.at;
                if let Some(cell) = self
                    .cells
                    .get_mut(row)
                    .and_then(|line| line.get_mut(column))
                {
                    *cell = letter;
                }
                self.at.1 += 1;
                self.widest = self.widest.max(self.at.1);
            }
        }
    }

    fn escape(&mut self, words: &str, end: char) {
        match (words, end) {
            ("[?1049", 'h' | 'l') => self.is_alternate = end == 'h',
            ("[?9999", 'h') => self.is_over = true,
            ("[?25", 'h' | 'l') => self.is_cursor_shown = end == 'h',
            ("[2", 'J') => self.cells.iter_mut().for_each(|line| line.fill(' ')),
            (_, 'H') => {
                let (row, column) = words[1..].split_once(';').unwrap_or(("1", "1"));
                let index = |text: &str| text.parse::<usize>().unwrap() - 1;
                self.at = (index(row), index(column));
            }
            _ => {}
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const fn size(rows: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
