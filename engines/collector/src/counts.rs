// SPDX-License-Identifier: Apache-2.0
//! The collector's counters in addition to the ledger: false claims of exporters, and losses.

use turboflow_engine::OwnCount;

macro_rules! counts {
    ($($field:ident, $about:literal;)*) => {
        /// Counters of a collector. Each only grows, except that a late datagram takes back what
        /// its gap had counted as lost.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $(#[doc = $about] pub $field: u64,)*
        }

        impl Counts {
            /// The counters with their names, always in the same order.
            #[must_use]
            pub fn own_counts(&self) -> Vec<OwnCount> {
                vec![$(OwnCount {
                    name: concat!("engine_collector_", stringify!($field)),
                    about: $about,
                    is_gauge: false,
                    count: self.$field,
                },)*]
            }
        }
    };
}

counts! {
    messages, "messages of exporters that were read";
    flows, "flow records that became microflow records, each direction of a biflow";
    microflows, "microflow records of other TurboFlows";
    probes_unknown, "messages of counters of more probes than are told apart, whose losses are not known";
    microflows_refused, "messages of TurboFlows that were refused: of another definition, or ahead";
    messages_malformed, "messages that end early, or are not NetFlow v5, v9, IPFIX or sFlow";
    flows_refused, "messages of flow records where only microflow records are taken";
    messages_repeated, "datagrams that came twice, and were left out the second time";
    messages_late, "datagrams that came behind later ones";
    messages_lost, "NetFlow v9 messages missing in the sequence numbers, with unknown records";
    records_lost, "records missing in the sequence numbers of NetFlow v5, IPFIX and sFlow";
    samples_dropped, "packets that switches were to sample, and did not, as sFlow tells";
    samples_unchecked, "samples of sFlow whose data source is beyond the limit of known ones";
    numbered_through, "domains whose IPFIX numbers count a message's own records (softflowd)";
    sequence_restarts, "sequence numbers that began anew: an exporter started again";
    exporters_forgotten, "exporters forgotten for newer ones, with their templates";
    domains_forgotten, "observation domains forgotten for newer ones, with their templates";
    templates_refused, "templates over the limits, or of no flow records' length";
    sets_waiting_lost, "sets of records whose template did not come in time";
    records_not_flows, "records without addresses or packets, such as events";
    records_implausible, "records with more packets or bytes than a link carries";
    times_in_future, "flow records that end after they were exported; cut to that time";
    times_wrong, "flow records that end before they begin, or have no time; corrected";
    clocks_ahead, "messages of exporters whose clock is ahead of this machine's; shifted";
    records_sampled, "flow records of sampled traffic";
    records_scaled, "of these: flow records whose packets and bytes were scaled";
    records_late, "records older than the lag; merged, in flow records of their own";
    released_early, "records that left before the lag, because the buffer was full";
}
