// SPDX-License-Identifier: Apache-2.0
//! The effects of keys.

use turboflow_top::{BINS_A_SECOND, Key, Screen, Sort, View};

fn press(screen: &mut Screen, text: &str) -> bool {
    text.chars().any(|letter| screen.press(Key::Char(letter)))
}

#[test]
fn views_by_number_and_tab() {
    let mut screen = Screen::default();
    press(&mut screen, "3");
    assert_eq!(screen.view, View::Protocols);
    screen.press(Key::Tab);
    screen.press(Key::Tab);
    assert_eq!(screen.view, View::Flows);
    screen.press(Key::BackTab);
    assert_eq!(screen.view, View::Health);
}

#[test]
fn applications_have_a_view_if_packets_are_inspected() {
    let mut screen = Screen::default();
    press(&mut screen, "25");
    assert_eq!(screen.view, View::Hosts);
    assert!(
        screen
            .message
            .is_some_and(|message| message.contains("not inspected"))
    );
    let mut screen = Screen {
        has_applications: true,
        ..Screen::default()
    };
    press(&mut screen, "5");
    assert_eq!(screen.view, View::Applications);
    screen.press(Key::Tab);
    screen.press(Key::BackTab);
    assert_eq!(screen.view, View::Applications);
}

#[test]
fn sorts_pauses_and_scrolls() {
    let mut screen = Screen::default();
    press(&mut screen, "srp");
    assert_eq!(
        (screen.sort, screen.is_reversed, screen.is_paused),
        (Sort::Packets, true, true)
    );
    press(&mut screen, "Sr ");
    assert_eq!(
        (screen.sort, screen.is_reversed, screen.is_paused),
        (Sort::Bits, false, false)
    );
    screen.press(Key::Up);
    screen.press(Key::PageDown);
    screen.press(Key::Down);
    assert_eq!(screen.scroll, 11);
    screen.press(Key::End);
    screen.press(Key::Down);
    screen.press(Key::Home);
    assert_eq!(screen.scroll, 0);
}

#[test]
fn the_interval_is_bounded() {
    let mut screen = Screen::default();
    press(&mut screen, "+++++++");
    assert_eq!(screen.interval, 10 * BINS_A_SECOND);
    press(&mut screen, "-");
    assert_eq!(screen.interval, 5 * BINS_A_SECOND);
    screen.interval = 3;
    press(&mut screen, "+");
    assert_eq!(screen.interval, 2 * BINS_A_SECOND);
    press(&mut screen, "-----");
    assert_eq!(screen.interval, BINS_A_SECOND);
}

#[test]
fn a_filter_can_be_typed() {
    let mut screen = Screen::default();
    // Here, `q` is part of the filter.
    assert!(!press(&mut screen, "/host q"));
    screen.press(Key::Enter);
    assert!(screen.filter.is_none());
    assert!(
        screen
            .message
            .as_ref()
            .is_some_and(|words| words.contains("not an IP address"))
    );
    screen.press(Key::Backspace);
    assert!(screen.message.is_none());
    press(&mut screen, "10.0.0.1");
    screen.press(Key::Enter);
    let words = screen.filter.as_ref().map(|(words, _)| words.as_str());
    assert_eq!((words, &screen.typing), (Some("host 10.0.0.1"), &None));
    press(&mut screen, "/");
    assert_eq!(screen.typing.as_deref(), Some("host 10.0.0.1"));
    screen.press(Key::Escape);
    assert!(screen.filter.is_some());
    screen.press(Key::Escape);
    assert!(screen.filter.is_none());
}

#[test]
fn q_and_control_c_end_the_program() {
    let mut screen = Screen::default();
    assert!(!press(&mut screen, "?"));
    assert!(screen.is_help && press(&mut screen, "q"));
    assert!(press(&mut Screen::default(), "q"));
    press(&mut screen, "/");
    assert!(screen.press(Key::Interrupt));
}
