// SPDX-License-Identifier: Apache-2.0
//! `/healthz`: whether the run is healthy, and if not, why.

use hyper::StatusCode;
use turboflow_engine::PortState;
use turboflow_run::LiveSnapshot;

use super::http::Reply;
use crate::bridge::Told;

/// 200 while every interface exists, every output takes records, and the ledger balances. Otherwise
/// 503, with one line per problem. An interface that is down is only mentioned, because it may come
/// back.
pub(super) fn page(snapshot: &LiveSnapshot, bridge: Option<Told>) -> Reply {
    let (mut problems, mut notes) = (Vec::new(), Vec::new());
    for (place, (name, _, state)) in snapshot.interfaces.iter().enumerate() {
        match state {
            state if state.is_unheard() && is_followed(snapshot, place) => notes.push(format!(
                "{name} was not heard to its end; a later one of that host is"
            )),
            PortState::Displaced => problems.push(format!(
                "interface {name}: the engine is no longer attached"
            )),
            PortState::Gone => problems.push(format!("interface {name} was removed")),
            PortState::Disconnected => problems.push(format!(
                "{name}: its connection ended before its final counters arrived"
            )),
            PortState::Silent => problems.push(format!(
                "{name} has fallen silent, and its final counters have not arrived"
            )),
            PortState::Down => notes.push(format!("interface {name} is down")),
            PortState::Up => {}
        }
    }
    let failed = snapshot.outputs.iter().filter(|output| output.failed);
    problems.extend(failed.map(|output| format!("output {} failed", output.name)));
    let imbalances = snapshot.ledger.imbalances();
    problems.extend(
        imbalances
            .iter()
            .map(|what| format!("ledger: {what}: a bug in turboflow")),
    );
    if let Some(told) = bridge {
        problems.extend(told.problems);
        notes.extend(told.notes);
    }
    let (status, word) = match problems.is_empty() {
        true => (StatusCode::OK, "ok"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "ill"),
    };
    let lines: Vec<_> = [word.to_owned()]
        .into_iter()
        .chain(problems)
        .chain(notes)
        .collect();
    Reply::text(status, lines.join("\n") + "\n")
}

/// Whether a sender that began later on the same host is heard: a probe that was started again.
fn is_followed(snapshot: &LiveSnapshot, place: usize) -> bool {
    // The name ends with a number of the run.
    let host_of = |name: &str| name.rsplit_once(' ').map(|(host, _)| host.to_owned());
    let host = host_of(&snapshot.interfaces[place].0);
    let mut later = snapshot.interfaces[place + 1..].iter();
    host.is_some() && later.any(|(name, _, state)| *state == PortState::Up && host_of(name) == host)
}

#[cfg(test)]
mod tests {
    use turboflow_formats::WriteProgress;
    use turboflow_run::{Ledger, OutputSnapshot};

    use super::*;

    fn snapshot(state: PortState, failed: bool, ledger: Ledger) -> LiveSnapshot {
        let output = OutputSnapshot {
            name: "a.csv".to_owned(),
            records: 0,
            records_overrun: 0,
            progress: WriteProgress::default(),
            failed,
            sending: None,
        };
        LiveSnapshot {
            ledger,
            clock_ns: 0,
            interfaces: vec![("eth0".to_owned(), Default::default(), state)],
            own_counts: Vec::new(),
            outputs: vec![output],
        }
    }

    #[test]
    fn a_bridge_tells_its_state() {
        let well = snapshot(PortState::Up, false, Ledger::default());
        let mut told = Told {
            notes: vec!["fail = \"open\"".to_owned()],
            ..Told::default()
        };
        let reply = page(&well, Some(told.clone()));
        let body = "ok\nfail = \"open\"\n";
        assert_eq!((reply.status, reply.body.as_str()), (StatusCode::OK, body));
        told.problems.push("the inspector is gone".to_owned());
        let reply = page(&well, Some(told));
        assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(
            reply.body.starts_with("ill\nthe inspector is gone\nfail"),
            "{}",
            reply.body
        );
    }

    #[test]
    fn a_probe_that_was_started_again_is_well() {
        let mut snapshot = snapshot(PortState::Up, false, Ledger::default());
        let mut adds = |name: &str, state| {
            let port = (name.to_owned(), Default::default(), state);
            snapshot.interfaces.push(port);
            page(&snapshot, None)
        };
        let ill = StatusCode::SERVICE_UNAVAILABLE;
        assert_eq!(adds("probe 192.0.2.1 7", PortState::Silent).status, ill);
        assert_eq!(adds("probe 192.0.2.2 8", PortState::Up).status, ill);
        let well = adds("probe 192.0.2.1 9", PortState::Up);
        assert_eq!(well.status, StatusCode::OK, "{}", well.body);
        assert!(
            well.body
                .contains("probe 192.0.2.1 7 was not heard to its end")
        );
        assert_eq!(
            adds("probe 192.0.2.1 4", PortState::Disconnected).status,
            ill
        );
    }

    #[test]
    fn lists_every_problem() {
        let well = page(&snapshot(PortState::Up, false, Ledger::default()), None);
        assert_eq!((well.status, well.body.as_str()), (StatusCode::OK, "ok\n"));
        let down = page(&snapshot(PortState::Down, false, Ledger::default()), None);
        assert_eq!(
            (down.status, down.body.as_str()),
            (StatusCode::OK, "ok\ninterface eth0 is down\n")
        );
        let lost = Ledger {
            packets_received: 1,
            ..Ledger::default()
        };
        for (ill, words) in [
            (
                snapshot(PortState::Displaced, false, Ledger::default()),
                "no longer attached",
            ),
            (
                snapshot(PortState::Gone, false, Ledger::default()),
                "removed",
            ),
            (
                snapshot(PortState::Up, true, Ledger::default()),
                "a.csv failed",
            ),
            (snapshot(PortState::Up, false, lost), "1 against 0"),
        ] {
            let page = page(&ill, None);
            assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE);
            assert!(page.body.contains(words), "{}", page.body);
        }
    }
}
