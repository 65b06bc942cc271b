// SPDX-License-Identifier: Apache-2.0
//! Ticks: JSON lines that say which records of a run each partition holds. `docs/kafka.md`
//! describes the fields.

use serde::Serialize;

use crate::Totals;
use crate::account::Account;

/// The fields that all lines of a tick have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TickHead {
    pub(crate) exporter: String,
    pub(crate) run: u64,
    pub(crate) topic: String,
    /// Number of the tick, counted from 1.
    pub(crate) tick: u64,
    pub(crate) time_ns: u64,
    #[serde(rename = "final")]
    pub(crate) is_final: bool,
    /// Records sent although the watermark of an earlier tick was later than their first packet.
    pub(crate) late_records: u64,
}

/// The line of one partition.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    head: &'a TickHead,
    watermark_ns: u64,
    partition: usize,
    partitions: usize,
    offset: i64,
    records: u64,
    packets: u64,
    bytes: u64,
    run_records: u64,
    run_packets: u64,
    run_bytes: u64,
    lost_records: u64,
    lost_packets: u64,
    lost_bytes: u64,
}

/// Writes a line for each partition, or one for the first partition while the number of partitions
/// is unknown. `never_sent` are records that were lost before they became messages.
pub(crate) fn write_lines(
    head: &TickHead,
    account: &Account,
    never_sent: u64,
    to: &mut Vec<u8>,
) -> serde_json::Result<()> {
    let shares = match &account.shares[..] {
        [] => &[crate::account::Share::default()][..],
        known => known,
    };
    for (partition, share) in shares.iter().enumerate() {
        let Totals {
            records,
            packets,
            octets: bytes,
        } = share.totals;
        let line = Line {
            head,
            watermark_ns: account.complete_ns,
            partition,
            partitions: shares.len(),
            offset: share.offset,
            records,
            packets,
            bytes,
            run_records: account.arrived.records,
            run_packets: account.arrived.packets,
            run_bytes: account.arrived.octets,
            lost_records: account.lost.records + never_sent,
            lost_packets: account.lost.packets,
            lost_bytes: account.lost.octets,
        };
        serde_json::to_writer(&mut *to, &line)?;
        to.push(b'\n');
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_as_documented() {
        let head = TickHead {
            exporter: "tap \"7\"".to_owned(),
            run: 14,
            topic: "flows".to_owned(),
            tick: 3,
            time_ns: 1_700_000_000_000_000_000,
            is_final: true,
            late_records: 1,
        };
        let mut account = Account::default();
        let totals = |records| Totals {
            records,
            packets: 2 * records,
            octets: 9 * records,
        };
        let parcels = [5, 6].map(|records| account.send(totals(records)));
        account.mark(1_699_999_980_000_000_000);
        account.arrive(&parcels[0], 1, 41);
        account.lose(&parcels[1]);
        let mut lines = Vec::new();
        write_lines(&head, &account, 4, &mut lines).unwrap();
        let lines = String::from_utf8(lines).unwrap();
        let (first, second) = lines.split_once('\n').unwrap();
        assert!(first.contains(r#""partition":0,"partitions":2,"offset":-1,"records":0,"#));
        assert_eq!(
            second,
            concat!(
                r#"{"exporter":"tap \"7\"","run":14,"topic":"flows","tick":3,"#,
                r#""time_ns":1700000000000000000,"final":true,"late_records":1,"#,
                r#""watermark_ns":1699999980000000000,"partition":1,"partitions":2,"offset":41,"#,
                r#""records":5,"packets":10,"bytes":45,"#,
                r#""run_records":5,"run_packets":10,"run_bytes":45,"#,
                r#""lost_records":10,"lost_packets":12,"lost_bytes":54}"#,
                "\n"
            )
        );
    }
}
