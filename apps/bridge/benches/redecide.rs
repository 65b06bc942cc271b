// SPDX-License-Identifier: Apache-2.0
//! Measures how long it takes to decide open flows again after the rules were reloaded.
//!
//! `cargo bench --package turboflow-bridge` prints one line for each number of rules.

use std::hint::black_box;
use std::net::IpAddr;
use std::time::Instant;

use turboflow_bridge::{Application, Decision, Facts, Rules};
use turboflow_inspect::{Confidence, Progress};
use turboflow_record::{ApplicationNames, FiveTuple};

const FLOWS: u32 = 100_000;
const APPLICATIONS: u32 = 300;
const CARRIER: u32 = 5_000;
const REPEATS: u32 = 21;

fn names() -> ApplicationNames {
    let named = |number: u32| (number, format!("App{number}"), (number % 30) as u8);
    ApplicationNames {
        applications: (0..APPLICATIONS).map(named).collect(),
        categories: (0..30)
            .map(|number| (number, format!("Category{number}")))
            .collect(),
        ..ApplicationNames::default()
    }
}

/// Rules of every kind, most of them about applications. Few flows match one.
fn text(rules: u32, action: &str) -> String {
    let condition = |number: u32| match number % 8 {
        0..=4 => format!("application = [\"App{}\"]", 1 + number % (APPLICATIONS - 1)),
        5 => format!(
            "src = [\"172.16.{}.0/24\", \"2001:db8:{number:x}::/48\"]",
            number % 256
        ),
        6 => format!("server_name = [\"*.s{number}.example.com\", \"s{number}.example.net\"]"),
        _ => format!("port = [{}]\nprotocol = [\"udp\"]", 1 + number % 1000),
    };
    let rule = |number: u32| {
        format!(
            "[[rule]]\nname = \"r{number}\"\naction = \"{action}\"\n{}\n",
            condition(number)
        )
    };
    (0..rules).map(rule).collect()
}

fn flow(number: u32) -> (Facts<'static>, u32) {
    let from = IpAddr::from((0x0a00_0000 + number).to_be_bytes());
    let to = IpAddr::from([192, 0, 2, (number % 250) as u8]);
    let facts = Facts {
        tuple: FiveTuple::new(from, to, 1024 + (number % 50_000) as u16, 443, 6),
        progress: Progress::Complete,
        application: Some(Application {
            // No rule names the carrier, and rules name few of the applications.
            number: (CARRIER << 16) | (1 + number * 7 % (4 * APPLICATIONS)),
            category: (number % 30) as u8,
            confidence: Confidence::Payload,
        }),
        server_name: Some("cdn-7.edge.video.example.org"),
        risk: 0,
    };
    (facts, number)
}

#[allow(clippy::disallowed_methods, reason = "it measures")]
fn main() {
    let names = names();
    for rules in [10, 100, 1000] {
        let read = |action, before| Rules::parse(&text(rules, action), Some(&names), before);
        let before = read("drop", None).expect("they are right");
        let after = read("pass", Some(&before)).expect("they are right");
        let flows: Vec<(u32, Facts<'_>, Decision)> = (0..FLOWS)
            .map(flow)
            .map(|(facts, number)| (number, facts, before.decide(&facts)))
            .collect();
        let mut times: Vec<f64> = Vec::new();
        let mut changed = 0;
        for _ in 0..REPEATS {
            let start = Instant::now();
            changed = black_box(after.redecide(black_box(&flows).iter().copied()).count());
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let (least, median) = (times[0], times[times.len() / 2]);
        println!(
            "{FLOWS} flows, {rules} rules: {median:.1} ms (least {least:.1}), {changed} change"
        );
    }
}
