// SPDX-License-Identifier: Apache-2.0
//! `/healthz`: whether the run does what it was started for, and what is in its way.

use turboflow_engine::PortState;
use turboflow_run::LiveSnapshot;

use super::http::Reply;

/// 200 while every interface is there, every output takes records and the ledger balances; 503 with
/// one line for each that does not. An interface that is down is waited for, and only said.
pub(super) fn page(snapshot: &LiveSnapshot) -> Reply {
    let (mut ills, mut notes) = (Vec::new(), Vec::new());
    for (name, _, state) in &snapshot.interfaces {
        match state {
            PortState::Displaced => ills.push(format!(
                "interface {name}: the engine in the kernel is not on it any more"
            )),
            PortState::Gone => ills.push(format!("interface {name} was removed")),
            PortState::Down => notes.push(format!("interface {name} is down")),
            PortState::Up => {}
        }
    }
    let failed = snapshot.outputs.iter().filter(|output| output.failed);
    ills.extend(failed.map(|output| format!("output {} failed", output.name)));
    let imbalances = snapshot.ledger.imbalances();
    ills.extend(
        imbalances
            .iter()
            .map(|what| format!("ledger: {what}: a bug in turboflow")),
    );
    let (status, word) = match ills.is_empty() {
        true => (200, "ok"),
        false => (503, "ill"),
    };
    let lines: Vec<_> = [word.to_owned()]
        .into_iter()
        .chain(ills)
        .chain(notes)
        .collect();
    Reply::text(status, lines.join("\n") + "\n")
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
            outputs: vec![output],
        }
    }

    #[test]
    fn says_what_is_ill() {
        let well = page(&snapshot(PortState::Up, false, Ledger::default()));
        assert_eq!((well.status, well.body.as_str()), (200, "ok\n"));
        let down = page(&snapshot(PortState::Down, false, Ledger::default()));
        assert_eq!(
            (down.status, down.body.as_str()),
            (200, "ok\ninterface eth0 is down\n")
        );
        let lost = Ledger {
            packets_received: 1,
            ..Ledger::default()
        };
        for (ill, words) in [
            (
                snapshot(PortState::Displaced, false, Ledger::default()),
                "not on it any more",
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
            let page = page(&ill);
            assert_eq!(page.status, 503);
            assert!(page.body.contains(words), "{}", page.body);
        }
    }
}
