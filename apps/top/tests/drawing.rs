// SPDX-License-Identifier: Apache-2.0
//! Screens as text, compared with the files in `golden`. `UPDATE=1` rewrites the files; review the
//! difference before committing it.

use std::path::Path;

use crate::support::{Delta, batch, key, named_batch, schema, schema_with_applications};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use turboflow_run::Ledger;
use turboflow_top::{
    BIN_NS, Colours, Health, InterfaceHealth, Key, Moment, Picture, Screen, Source, Sums, Traffic,
    View, draw, lines,
};

const START_NS: u64 = 1_700_000_000 * 1_000_000_000;

/// A download with its acknowledgements, DNS, an IPv6 flow and a ping, over five seconds.
const FLOWS: [(&str, u64, u64); 6] = [
    ("198.51.100.10:443 > 192.0.2.10:43160/6", 62_500_000, 42_000),
    ("192.0.2.10:43160 > 198.51.100.10:443/6", 1_092_000, 21_000),
    ("192.0.2.10:40000 > 192.0.2.53:53/17", 6_400, 80),
    (
        "[2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff]:51234 > [2001:db8::1]:22/6",
        250_000,
        900,
    ),
    ("192.0.2.11:0 > 192.0.2.1:0/1", 84, 1),
    ("192.0.2.10:0 > 203.0.113.7:0/253", 1_500, 1),
];

/// The applications of these flows, which are recognised in the fourth half second.
const APPLICATIONS: [Option<&str>; 6] = [
    Some("TLS.Wikipedia"),
    Some("TLS.Wikipedia"),
    Some("DNS"),
    Some("SSH"),
    Some("ICMP"),
    None,
];

fn picture(screen: &Screen) -> Picture {
    let mut traffic = match screen.has_applications {
        true => Traffic::new(&schema_with_applications()),
        false => Traffic::new(&schema()),
    };
    for bin in 0..10 {
        let delta = |(text, bytes, packets): (&str, u64, u64)| Delta {
            key: key(text),
            sums: Sums { bytes, packets },
            first_ns: START_NS + bin * BIN_NS,
            last_ns: START_NS + bin * BIN_NS + BIN_NS / 2,
        };
        // The last two flows fall silent after a second.
        let talking = if bin < 2 { FLOWS.len() } else { 4 };
        let deltas: Vec<_> = FLOWS[..talking].iter().map(|flow| delta(*flow)).collect();
        if screen.has_applications {
            let known = APPLICATIONS.map(|name| name.filter(|_| bin >= 3));
            let named: Vec<_> = deltas.into_iter().zip(known).collect();
            traffic.add(&named_batch(&named));
        } else {
            traffic.add(&batch(&deltas));
        }
    }
    let window = traffic.window(Some(START_NS + 12 * BIN_NS), screen.interval);
    screen.arrange(&traffic.picture(window))
}

fn health() -> Health {
    let ledger = |packets: u64| Ledger {
        packets_received: packets,
        bytes_received: packets * 1_000,
        packets_recorded: packets - 300,
        packets_resident: 200,
        packets_non_ip: 60,
        packets_malformed: 40,
        source_dropped: 7,
        flows_resident: 250_000,
        flows_opened: 5_000,
        rejected: vec![
            turboflow_run::ReasonCount {
                reason: "arp",
                class: "non_ip",
                packets: 60,
                bytes: 3_600,
            },
            turboflow_run::ReasonCount {
                reason: "ipv6_jumbo_payload_option",
                class: "malformed",
                packets: 40,
                bytes: 2_400,
            },
        ],
        ..Ledger::default()
    };
    let ledger = |packets: u64| {
        let mut ledger = ledger(packets);
        ledger.microflows_evicted.age = packets / 20;
        ledger
    };
    let moment = |packets, seconds: u64| Moment {
        ledger: ledger(packets),
        clock_ns: START_NS + seconds * 1_000_000_000,
    };
    let mut health = Health {
        flows_max: 1_000_000,
        threads: 2,
        ..Health::default()
    };
    health.update(moment(100_000, 4), Vec::new());
    let interface = InterfaceHealth {
        name: "eth0".to_owned(),
        state: "up",
        seen: 164_010,
        dropped: 7,
        merged: 0,
    };
    health.update(moment(164_000, 5), vec![interface]);
    health
}

fn source() -> Source {
    Source {
        name: "eth0".to_owned(),
        state: String::new(),
    }
}

fn shown(screen: &Screen, width: u16, height: u16) -> String {
    let backend = TestBackend::new(width, height);
    let mut terminal = Terminal::new(backend).expect("it needs nothing");
    let (picture, health) = (picture(screen), health());
    let drawn = |frame: &mut ratatui::Frame<'_>| {
        let buffer = frame.buffer_mut();
        draw(buffer, screen, &source(), &picture, &health, Colours::None);
    };
    terminal.draw(drawn).expect("it cannot fail");
    lines(terminal.backend().buffer()).join("\n") + "\n"
}

fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().expect("golden")).expect("writable");
        std::fs::write(&path, text).expect("writable");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name}: UPDATE=1 accepts it");
}

#[test]
fn views_match_the_golden_files() {
    for view in View::ALL {
        let screen = Screen {
            view,
            has_applications: view == View::Applications,
            ..Screen::default()
        };
        compare(
            &format!("{}-80x24.txt", view.name()),
            &shown(&screen, 80, 24),
        );
        compare(
            &format!("{}-200x50.txt", view.name()),
            &shown(&screen, 200, 50),
        );
    }
}

#[test]
fn flows_are_shown_and_filtered_by_application() {
    let mut screen = Screen {
        has_applications: true,
        ..Screen::default()
    };
    compare("flows-by-application-80x24.txt", &shown(&screen, 80, 24));
    let filter = "application = 'TLS.Wikipedia'";
    screen.set_filter(filter).expect("it is a column");
    let picture = picture(&screen);
    let rows = |picture: &Picture| (picture.flows.len(), picture.applications.len());
    assert_eq!(rows(&picture), (2, 1));
    assert_eq!(picture.all.total, picture.applications[0].measured.total);
}

#[test]
fn help_and_filter_match_the_golden_files() {
    let mut screen = Screen::default();
    screen.press(Key::Char('?'));
    compare("help-80x24.txt", &shown(&screen, 80, 24));
    let mut screen = Screen {
        is_paused: true,
        ..Screen::default()
    };
    "/tcp and bps > x".chars().for_each(|letter| {
        screen.press(Key::Char(letter));
    });
    screen.press(Key::Enter);
    compare("wrong-filter-80x24.txt", &shown(&screen, 80, 24));
    screen.press(Key::Backspace);
    screen.press(Key::Char('1'));
    screen.press(Key::Enter);
    compare("filter-40x10.txt", &shown(&screen, 40, 10));
}

#[test]
fn no_size_is_too_small() {
    let health = health();
    for view in View::ALL {
        for is_help in [false, true] {
            let screen = Screen {
                view,
                is_help,
                scroll: usize::MAX,
                typing: is_help.then(String::new),
                ..Screen::default()
            };
            let picture = picture(&screen);
            for (width, height) in (0..=24).flat_map(|width| (0..=9).map(move |y| (width * 4, y))) {
                let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
                draw(
                    &mut buffer,
                    &screen,
                    &source(),
                    &picture,
                    &health,
                    Colours::Some,
                );
            }
            let mut cell = Buffer::empty(Rect::new(0, 0, 1, 1));
            draw(
                &mut cell,
                &screen,
                &source(),
                &picture,
                &health,
                Colours::Some,
            );
            assert_eq!(lines(&cell), ["t"]);
        }
    }
}

#[test]
fn colours_can_be_disabled() {
    let screen = Screen::default();
    let (picture, health) = (picture(&screen), health());
    let colours = |colours| {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
        draw(&mut buffer, &screen, &source(), &picture, &health, colours);
        let plain = ratatui::style::Color::Reset;
        buffer
            .content
            .iter()
            .any(|cell| cell.fg != plain || cell.bg != plain)
    };
    assert!(colours(Colours::Some));
    assert!(!colours(Colours::None));
}

#[test]
fn scrolling_to_the_end_shows_a_full_page() {
    let screen = Screen {
        scroll: usize::MAX,
        ..Screen::default()
    };
    let text = shown(&screen, 80, 8);
    let rows: Vec<_> = text.lines().skip(5).take(2).collect();
    assert!(rows.iter().all(|row| row.contains("192.0.2.1")), "{text}");
}
