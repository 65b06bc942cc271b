// SPDX-License-Identifier: Apache-2.0
//! The collector's counters in addition to the ledger: false claims of exporters, and losses.

use turboflow_engine::OwnCount;

use crate::header::Version;

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
    flows, "flow records that became microflow records; a biflow counts once per direction";
    microflows, "microflow records from other TurboFlow processes";
    probes_unknown, "counter messages of probes beyond the limit, whose losses are unknown";
    microflows_refused,
        "messages of TurboFlow that were refused, such as those of another definition";
    messages_malformed, "messages that end early, or are not NetFlow v5, v9, IPFIX or sFlow";
    messages_damaged,
        "NetFlow v9 messages that end early, whose number of lost records is unknown";
    flows_refused, "messages refused because only microflow records are accepted";
    messages_repeated, "datagrams that arrived a second time and were ignored";
    messages_late, "datagrams that arrived after later ones";
    messages_lost,
        "NetFlow v9 messages missing in the sequence numbers, whose number of records is unknown";
    records_lost, "records missing in the sequence numbers of NetFlow v5, IPFIX and sFlow";
    records_unread,
        "those of them that are missing where sets of records arrived without their template";
    samples_dropped,
        "packets that switches should have sampled, but did not for lack of resources";
    samples_unchecked,
        "sFlow samples of data sources beyond the limit, whose losses are not counted";
    numbered_through,
        "observation domains whose IPFIX sequence numbers include a message's own records";
    sequence_restarts, "restarts of sequence numbers, because an exporter restarted";
    exporters_forgotten,
        "exporters forgotten, with their templates, to make room for newer ones";
    domains_forgotten,
        "observation domains forgotten, with their templates, to make room for newer ones";
    templates_refused, "templates beyond the limits, or whose records have no length";
    sets_waiting_lost, "sets of records whose template did not arrive in time";
    records_not_flows, "records without addresses or packets, such as events";
    records_implausible, "records refused for implausibly many packets or bytes";
    times_in_future,
        "flow records that end over a minute after export; the end was set to the time of export";
    times_wrong,
        "flow records whose times are missing or contradictory; the times were corrected";
    clocks_ahead,
        "messages of exporters whose clock is ahead; their times were shifted back";
    records_sampled, "flow records of sampled traffic";
    records_scaled, "flow records of sampled traffic whose packets and bytes were scaled";
    records_across_windows,
        "flow records with packets of two windows (`timeouts.align`), which cannot be divided";
    records_late, "records that arrived after the lag; merged into flow records of their own";
    released_early, "records merged before the lag was over, because the buffer was full";
}

impl Counts {
    /// Records that had counted as missing are read only now.
    pub(crate) fn take_back(&mut self, found: u64) {
        self.records_lost = self.records_lost.saturating_sub(found);
        self.records_unread = self.records_unread.saturating_sub(found);
    }

    /// Counts a message that ends early.
    pub(crate) fn add_damaged(&mut self, version: Version) {
        self.messages_malformed += 1;
        // The other versions number records, so the next message tells how many this one lacked.
        self.messages_damaged += u64::from(version == Version::Netflow9);
    }
}
