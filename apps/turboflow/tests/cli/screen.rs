// SPDX-License-Identifier: Apache-2.0
//! `turboflow top` in a terminal: keys work, and the terminal is restored.

use rustix::process::Signal;

use crate::support::{command, office};
use crate::terminal::Terminal;

fn top(options: &[&str]) -> Terminal {
    let office = office();
    let words = ["top", "-r", &office].into_iter();
    Terminal::start(&command(words.chain(options.iter().copied())), 24, 80)
}

#[test]
fn keys_work() {
    let mut screen = top(&["--speed", "max"]);
    screen.wait_for("at its end");
    assert!(screen.text().contains("source"));
    screen.press("2");
    screen.wait_for("received");
    screen.press("3");
    screen.wait_for("of bytes in all");
    screen.press("\t");
    screen.wait_for("flow cache");
    screen.press("1s");
    screen.wait_for("(packets)");
    screen.press("ssr");
    screen.wait_for("(total reversed)");
    screen.press("r/tcp and nonsense\r");
    screen.wait_for("unknown field \"nonsense\"");
    screen.press("\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7fport 22\r");
    screen.wait_for("filter: tcp and port 22");
    screen.wait("rows without port 22", |text| {
        let rows = text
            .lines()
            .skip(5)
            .take(18)
            .filter(|row| !row.trim().is_empty());
        rows.clone().count() > 1 && rows.clone().all(|row| row.contains(":22"))
    });
    // Escape is sent alone, because together with a letter it would mean Alt and that letter.
    screen.press("\x1b");
    screen.wait("without the filter", |text| !text.contains("filter: tcp"));
    screen.press("?");
    screen.wait_for("Any key goes back");
    screen.press("x");
    screen.wait_for("source");
    screen.press("p");
    screen.wait_for("PAUSED");
    screen.press("+");
    screen.wait_for("every 2s");
    screen.press("q");
    assert_eq!(screen.ends(), 0);
}

#[test]
fn the_window_can_be_resized() {
    let mut screen = top(&["--speed", "max"]);
    screen.wait_for("at its end");
    screen.wait("many rows", |text| text.matches("tcp").count() > 5);
    screen.resize(6, 30);
    screen.wait("one row", |text| {
        text.contains("source") && text.matches("tcp").count() <= 1
    });
    screen.resize(1, 1);
    screen.wait("a cell", |text| text == "t");
    screen.resize(40, 140);
    screen.wait("all columns", |text| {
        text.contains("10 s") && text.contains("age") && text.lines().count() == 40
    });
    screen.press("\x03");
    assert_eq!(screen.ends(), 0);
}

#[test]
fn the_terminal_is_restored_when_top_is_interrupted() {
    // The capture lasts 27 s and is replayed at its own speed.
    let mut screen = top(&[]);
    screen.wait("flows while it is read", |text| {
        text.contains("/s") && text.contains(":80")
    });
    assert!(!screen.text().contains("at its end"));
    screen.press("q");
    assert_eq!(screen.ends(), 0);
    for signal in [Signal::TERM, Signal::INT] {
        let mut screen = top(&[]);
        screen.wait_for("turboflow top");
        screen.signal(signal);
        assert_eq!(screen.ends(), 0, "{signal:?}");
    }
}
