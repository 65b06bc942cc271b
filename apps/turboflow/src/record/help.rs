// SPDX-License-Identifier: Apache-2.0
//! The texts after the options in the help of `turboflow record`.

use crate::engines;

/// Follows the options in `-h`, which is one screen.
pub(super) const SHORT: &str = "\
These are the options most used; --help has all of them, examples and exit codes.";

const EXAMPLES: &str = "\
Examples:
  Look at a capture: totals, top flow records, protocols, and where every packet went
    turboflow record -r office.pcap
  Keep the flow records, as Parquet and as CSV
    turboflow record -r office.pcap -w flows.parquet -w flows.csv
  Meter a directory of captures as one stream of packets, on four threads
    turboflow record -r day/*.pcap.zst -w day.parquet --threads 4
  Meter an interface until Ctrl-C, or for a minute; records are written as flows end
    turboflow record -i eth0 -w - --format jsonl
    turboflow record -i eth0 -i eth1 --duration 1m -w minute.parquet
  A file every five minutes, named by its start time
    turboflow record -i eth0 -w flows-%Y%m%dT%H%M%S.parquet --rotate 5m
  Only the packets that match a filter in tcpdump's language
    turboflow record -i eth0 'tcp port 443'
    turboflow record -r office.pcap 'net 192.0.2.0/24 and not port 53'
  Send records to a collector, and keep them
    turboflow record -r office.pcap -w ipfix+udp://127.0.0.1:4739 -w flows.parquet
  Send records to Kafka as JSON lines, 100 in a message; docs/kafka.md has the other settings
    turboflow record -i eth0 -w 'kafka://kafka1:9092/flows?format=json&records=100'
  Probes that send microflow records to a collector, which merges them into flow records
    turboflow collect --listen tls://:4740 --only-microflows --collector-lag 5s -w flows.parquet \\
        --listen-cert collector.pem --listen-key collector.key
    turboflow record -i eth0 -w microflows+tls://collector.example:4740
  In a pipe
    ssh router tcpdump -i eth0 -w - | turboflow record -r - -w - --format csv | head
  The exact totals of every flow, however long its pauses
    turboflow record -r office.pcap -w totals.csv \\
        --idle-timeout none --active-timeout none --linger none
  The packets inside tunnels, with both directions of a flow in one record
    turboflow record -r office.pcap -w inner.csv --decapsulate --reassemble-flows --biflow
";

const EXIT_CODES: &str = "
Exit codes:
  0  all well; also if the reader of standard output closed the pipe (`| head`)
  1  it ran, but a capture was damaged, records could not be written or sent, packets had an unknown
     link type, packets of an interface were dropped, an interface went away, or Ctrl-C ended the
     reading of files early: standard error says which and how much
  2  it could not run (wrong options or definition, files that are missing or not captures); no
     output was touched
  130  aborted by a second Ctrl-C; the unfinished outputs are removed
Packets that were lost when a file was captured (source_dropped), and frames that are not IP,
malformed or truncated, are counted and reported. They do not change the exit code.";

/// Follows the options in `--help`.
pub(super) fn examples() -> String {
    let own: String = engines::all().map(|engine| engine.example()).collect();
    format!("{EXAMPLES}{own}{EXIT_CODES}")
}
