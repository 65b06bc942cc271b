// SPDX-License-Identifier: Apache-2.0
//! `turboflow record` as typed.

use std::path::PathBuf;

use clap::Args;
use turboflow_formats::{Format, ParquetTypes, RotateBy, TimeForm};
use turboflow_merge::Initiator;
use turboflow_packet::TunnelSet;
use turboflow_record::TimeUnit;
use turboflow_run::{
    BridgeConfig, Count, CountAboveZero, FlowConfig, Interval, Linger, LogFormat, MeterConfig,
    MetricsAt, Mtu, OutputConfig, Rotation, RunConfig, Seed, ServiceConfig, Size, SnapLength,
    SourceConfig, Time, Timeout, TimeoutsConfig, Window,
};

use super::help::{SHORT, examples};
use super::telemetry::TelemetryArgs;
use super::value_names::{format, log_format, parquet_types, rotate_by, time_form};
use super::{filter, shared};
use crate::engines::EngineArgs;
use crate::units::time_unit;

/// Meter capture files or network interfaces: packets in, flow records out.
///
/// Reads pcap and pcapng (plain, gzip or zstd), or captures from interfaces (Linux), and writes one
/// record for every flow. By default, a flow is a unidirectional IP 5-tuple, and its record has
/// packets, bytes, times, TCP flags, lengths, TTL and type of service. Without -w, a summary is
/// printed. Every packet is in a flow record or in a counter that says why it is not; the sums are
/// checked at the end of every run.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(after_help = SHORT, after_long_help = examples())]
pub(crate) struct RecordArgs {
    /// Capture files, folders or quoted patterns, read as one stream of packets; `-` is standard
    /// input
    #[arg(short, long = "read", value_name = "FILE", num_args = 1..)]
    #[arg(help_heading = "Input and output")]
    read: Vec<PathBuf>,

    /// Interface to capture from, until Ctrl-C; repeat for more
    ///
    /// SIGTERM or a limit ends the capture too. Capturing needs the capability CAP_NET_RAW.
    #[arg(short, long, value_name = "IFACE", conflicts_with = "read")]
    #[arg(help_heading = "Input and output")]
    pub(crate) interface: Vec<String>,

    /// Interface to the CPU port of a pipeline (engine p4); repeat for more
    ///
    /// The pipeline's reports are merged until Ctrl-C. With -r, captures are sent through it.
    #[arg(long = "cpu-port", value_name = "IFACE")]
    #[arg(help_heading = "Input and output", hide_short_help = true)]
    cpu_port: Vec<String>,

    /// Only packets that match, in tcpdump's filter language
    ///
    /// `man pcap-filter` describes the language; libpcap must be installed. The expression may be
    /// one argument or several. After -r FILE, it begins at the first word that is not a file and
    /// can begin an expression, or after `--`.
    #[arg(value_name = "FILTER", help_heading = "Input and output")]
    filter: Vec<String>,

    /// Write flow records to a file or a collector; repeat for more
    ///
    /// The extension selects the format of a file: .csv, .jsonl (also .ndjson, .json), .parquet,
    /// .arrow or .ipfix; .csv.gz, .csv.zst, .jsonl.gz and .jsonl.zst are compressed. `-` is
    /// standard output. Collectors are ipfix+udp://HOST:PORT, ipfix+tcp://, ipfix+tls://,
    /// netflow9+udp:// and netflow5+udp://; a Kafka topic is kafka://HOST:PORT/TOPIC. To merge
    /// elsewhere, send microflow records to `turboflow collect` (microflows+udp://HOST:PORT,
    /// microflows+tcp:// or microflows+tls://), or write them to FILE.records. A complete
    /// file replaces an existing one. Without -w, a summary is printed.
    #[arg(
        short,
        long = "write",
        value_name = "OUT",
        help_heading = "Input and output"
    )]
    write: Vec<PathBuf>,

    /// Output format if no extension selects it: csv, jsonl, parquet, arrow or ipfix
    #[arg(long, value_name = "FORMAT", help_heading = "Input and output")]
    #[arg(value_parser = format(), hide_possible_values = true)]
    format: Option<Format>,

    /// Times in CSV and JSON: ns (first_ns), s (first_s) or iso (first_iso)
    ///
    /// Nanoseconds or seconds since 1970, or ISO 8601 in UTC.
    #[arg(
        long,
        value_name = "FORM",
        default_value = "ns",
        help_heading = "Input and output"
    )]
    #[arg(hide_short_help = true)]
    #[arg(value_parser = time_form(), hide_possible_values = true)]
    time: TimeForm,

    /// Protocols and end reasons by name in CSV and JSON
    #[arg(long, help_heading = "Input and output", hide_short_help = true)]
    names: bool,

    /// Types of Parquet columns: exact, lake or lake-binary
    ///
    /// `lake`: the types that table formats such as Iceberg support. Numbers are signed. Each time
    /// has two columns: all its nanoseconds as a long (first_ns) and, among the last columns, a
    /// timestamp in microseconds (first_time). Records have the columns of --identity.
    /// `lake-binary`: as `lake`, and also addresses as 16 bytes (src_addr_bytes).
    #[arg(
        long,
        value_name = "TYPES",
        default_value = "exact",
        hide_short_help = true
    )]
    #[arg(value_parser = parquet_types(), hide_possible_values = true)]
    #[arg(help_heading = "Input and output")]
    parquet_types: ParquetTypes,

    /// Write every counter of the run to this file, as JSON
    ///
    /// The file also has the seed, version, table sizes, damaged files and outputs of the run.
    #[arg(long, value_name = "FILE.json", help_heading = "Input and output")]
    ledger: Option<PathBuf>,

    /// Start a new file at this interval, such as 5m
    ///
    /// Intervals are aligned to UTC. Requires a time in the file name, such as
    /// flows-%Y%m%dT%H%M%S.parquet or %Y/%m/%d/flows-%H%M%S.parquet. A file gets its name once it
    /// is complete.
    #[arg(long, value_name = "TIME", value_parser = str::parse::<Rotation>, conflicts_with = "read")]
    #[arg(help_heading = "Input and output")]
    rotate: Option<Rotation>,

    /// Start a new file when the current one has this many bytes, such as 1GiB
    ///
    /// Parquet files end after a whole row group.
    #[arg(long, value_name = "SIZE", value_parser = str::parse::<Size>, conflicts_with = "read")]
    #[arg(help_heading = "Input and output", hide_short_help = true)]
    rotate_size: Option<Size>,

    /// The time that names a record's file: clock or record
    ///
    /// `clock`: the time when the file is begun. `record`: the record's first time, so that a
    /// folder such as dt=%Y-%m-%d/hour=%H has the flows that began in that hour. Up to four files
    /// are then open at once, one per interval of --rotate (default: an hour).
    #[arg(
        long,
        value_name = "BY",
        default_value = "clock",
        conflicts_with = "read"
    )]
    #[arg(value_parser = rotate_by(), hide_possible_values = true, hide_short_help = true)]
    #[arg(help_heading = "Input and output")]
    rotate_by: RotateBy,

    /// Sync files to the disk before they get their names
    ///
    /// A file that has its name is then complete, even after a power failure. Completing a file
    /// takes as long as the disk does. A service does this by default.
    #[arg(long, help_heading = "Input and output", hide_short_help = true)]
    sync: bool,

    /// As root, write through outputs that are symbolic links
    ///
    /// By default root refuses links: users who may write in the folder could link to any file.
    #[arg(long, help_heading = "Input and output", hide_short_help = true)]
    follow_links: bool,

    /// Remove files of this output that are older than this, such as 30d
    ///
    /// Whenever a file is complete, older files whose names match the pattern of -w are removed.
    /// The age of a file is that of the last record that it may hold.
    #[arg(long, value_name = "TIME", value_parser = str::parse::<Time>, conflicts_with = "read")]
    #[arg(help_heading = "Input and output", hide_short_help = true)]
    keep: Option<Time>,

    /// Remove the oldest files of this output beyond this many bytes, such as 100GB
    ///
    /// This limit never removes the newest file.
    #[arg(long, value_name = "SIZE", value_parser = str::parse::<Size>, conflicts_with = "read")]
    #[arg(help_heading = "Input and output", hide_short_help = true)]
    keep_size: Option<Size>,

    /// Replace addresses with prefix-preserving pseudonyms, by the key in this file
    ///
    /// Crypto-PAn: if two addresses have a common prefix, their pseudonyms have a common prefix of
    /// the same length. The key has 32 bytes: head -c 32 /dev/urandom > FILE. Anyone who has the
    /// key can reverse the pseudonyms.
    #[arg(long, value_name = "KEYFILE", help_heading = "Input and output")]
    #[arg(hide_short_help = true)]
    anonymize: Option<PathBuf>,

    /// Give records the columns `exporter`, `run` and `sequence`
    ///
    /// Together they identify a record among those of all exporters: the name that --exporter sets,
    /// a random number for the run, and the record's number in the run, from 1 without gaps.
    #[arg(long, help_heading = "Input and output", hide_short_help = true)]
    identity: bool,

    /// Name of this vantage point, for outputs with a column `exporter`. Default: the host name
    #[arg(long, value_name = "NAME", help_heading = "Input and output")]
    #[arg(hide_short_help = true)]
    exporter: Option<String>,

    /// No progress bar and no summary on standard error
    ///
    /// Errors and losses are still reported, and without -w the summary is still printed.
    #[arg(short, long, help_heading = "Input and output")]
    quiet: bool,

    /// Format of lines on standard error: auto, json or text
    ///
    /// `auto` is text, and in systemd's journal text with levels. `json` is one object per line.
    #[arg(long, value_parser = log_format(), hide_possible_values = true)]
    #[arg(default_value = "auto", value_name = "FORMAT", hide_short_help = true)]
    #[arg(help_heading = "Input and output")]
    pub(crate) log_format: LogFormat,

    #[command(flatten)]
    engine: EngineArgs,

    /// End after this much time, such as 10s
    #[arg(long, value_name = "TIME", value_parser = str::parse::<Time>, conflicts_with = "read")]
    #[arg(help_heading = "Interfaces")]
    duration: Option<Time>,

    /// End after this many packets that pass the filter
    ///
    /// Engines other than `software` may meter a few more.
    #[arg(short = 'c', long, value_name = "N", value_parser = str::parse::<CountAboveZero>)]
    #[arg(help_heading = "Input and output")]
    packets: Option<CountAboveZero>,

    /// Bytes kept of a packet. Default: all
    ///
    /// 128 or more are enough for the headers of most packets. With --unparsed-to: bytes kept of
    /// each written frame, by default 16,384.
    #[arg(
        long,
        value_name = "BYTES",
        conflicts_with = "read",
        help_heading = "Interfaces"
    )]
    #[arg(value_parser = str::parse::<SnapLength>, hide_short_help = true)]
    snap_length: Option<SnapLength>,

    /// Capture only frames for this host, not all that the interface sees
    #[arg(
        long,
        conflicts_with = "read",
        help_heading = "Interfaces",
        hide_short_help = true
    )]
    no_promiscuous: bool,

    /// Size of the ring in which the kernel keeps packets until they are read
    ///
    /// There is one ring per interface and reader, from 64KiB to 2GiB. When a ring is full, packets
    /// are dropped and counted. The engine in the kernel has one ring, for the microflow records of
    /// all interfaces; the size of that ring is rounded down to a power of two.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = str::parse::<Size>)]
    #[arg(
        conflicts_with = "read",
        help_heading = "Interfaces",
        hide_short_help = true
    )]
    ring_size: Size,

    /// What a flow record holds, as TOML; `turboflow definition` prints the default
    #[arg(long, value_name = "FILE", help_heading = "What a flow is")]
    definition: Option<PathBuf>,

    /// Join the two directions of a conversation into one record (RFC 5103)
    #[arg(long, help_heading = "What a flow is")]
    biflow: bool,

    /// Rule for the initiator of a biflow: `auto` or `first`
    ///
    /// If only one side sent a SYN (without ACK), that side is the initiator under both rules.
    /// Otherwise, with `first`, the initiator is the sender of the first packet. `auto` differs if
    /// that packet is a SYN+ACK or an echo reply: the initiator is then its receiver, if the
    /// receiver sent packets too.
    #[arg(long, value_name = "RULE", default_value = "auto", value_parser = str::parse::<Initiator>)]
    #[arg(help_heading = "What a flow is", hide_short_help = true)]
    initiator: Initiator,

    /// Meter the packets inside tunnels: all kinds, or those listed
    ///
    /// The innermost packet decides the flow. Separate kinds by commas: ipip, 6in4, gre, vxlan,
    /// geneve, gtp-u, teredo, l2tp, pseudowire. Default: none.
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "all", help_heading = "What a flow is")]
    decapsulate: Option<TunnelSet>,

    /// Give later fragments the ports of their first fragment
    ///
    /// All fragments of a datagram are then in one flow. At most 65,536 datagrams are tracked (88
    /// MB), for 30 s each. Default: ports 0/0.
    #[arg(long, help_heading = "What a flow is", hide_short_help = true)]
    reassemble_flows: bool,

    /// ICMP type * 256 + code as destination port, as in NetFlow
    ///
    /// Default: ports 0/0.
    #[arg(long, help_heading = "What a flow is", hide_short_help = true)]
    icmp_ports: bool,

    #[command(flatten)]
    telemetry: TelemetryArgs,

    /// A flow ends after this much time without packets; `none`: never
    ///
    /// A number with a unit: ns, us, ms, s, m, h or d.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = str::parse::<Timeout>)]
    #[arg(help_heading = "When flows end")]
    idle_timeout: Timeout,

    /// Maximum duration of a record; the flow continues in the next record
    ///
    /// `none` disables it.
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = str::parse::<Timeout>)]
    #[arg(help_heading = "When flows end")]
    active_timeout: Timeout,

    /// How long a flow that saw FIN or RST waits for its last packets
    ///
    /// 0 is allowed. `none`: FIN and RST do not end flows.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = str::parse::<Linger>)]
    #[arg(help_heading = "When flows end", hide_short_help = true)]
    linger: Linger,

    /// Also cut every flow at multiples of this time of the UTC clock, such as 1m
    ///
    /// No record then has packets of two windows: records of several exporters can be joined by key
    /// and window, and sums over windows are exact. Exporters of a collector need it, too.
    #[arg(long, value_name = "TIME", value_parser = str::parse::<Window>)]
    #[arg(help_heading = "When flows end", hide_short_help = true)]
    align: Option<Window>,

    /// Maximum flow records per second to a collector, such as 50k
    ///
    /// A capture is then read no faster than its records are sent. Default: as fast as the socket
    /// accepts records.
    #[arg(long, value_name = "N", value_parser = str::parse::<CountAboveZero>)]
    #[arg(help_heading = "Sending to collectors", hide_short_help = true)]
    export_rate: Option<CountAboveZero>,

    /// Maximum bytes of a message over UDP
    ///
    /// The default leaves room for IPv6, UDP and a tunnel on paths with an MTU of 1500. Lower it
    /// for paths with a smaller MTU, to avoid fragmentation.
    #[arg(long, value_name = "BYTES", default_value = "1400", value_parser = str::parse::<Mtu>)]
    #[arg(help_heading = "Sending to collectors", hide_short_help = true)]
    export_mtu: Mtu,

    /// How often templates and options are repeated over UDP
    ///
    /// They are also repeated every 4,096 messages. A collector that has restarted or missed
    /// them cannot read flows until they are repeated. Over TCP, only statistics are repeated.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = str::parse::<Interval>)]
    #[arg(help_heading = "Sending to collectors", hide_short_help = true)]
    template_interval: Interval,

    /// Send templates and flow records only
    ///
    /// Leaves out sampling, statistics and descriptions of elements, for collectors that count
    /// these options records as lost flow records (nfcapd 1.7 does so with IPFIX).
    #[arg(long, help_heading = "Sending to collectors", hide_short_help = true)]
    no_export_options: bool,

    /// Unit of first and last times in IPFIX: ms, us or ns
    ///
    /// Every collector supports ms.
    #[arg(long, value_name = "UNIT", default_value = "ms", value_parser = time_unit)]
    #[arg(help_heading = "Sending to collectors", hide_short_help = true)]
    export_time: TimeUnit,

    /// Observation domain of IPFIX, source id of NetFlow v9
    ///
    /// Its low 16 bits are the engine type and engine id of NetFlow v5. Default: random for each
    /// run and different for each output, so that collectors can distinguish exporters that share
    /// an address, such as containers; 1 in files.
    #[arg(
        long,
        value_name = "N",
        help_heading = "Sending to collectors",
        hide_short_help = true
    )]
    observation_domain: Option<u32>,

    /// CA certificates to trust for collectors over TLS, in PEM
    ///
    /// Default: the certificates that the system trusts.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Sending to collectors",
        hide_short_help = true
    )]
    tls_ca: Option<PathBuf>,

    /// Client certificate for collectors over TLS, in PEM
    ///
    /// Intermediate certificates follow it in the file.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    #[arg(help_heading = "Sending to collectors", hide_short_help = true)]
    tls_cert: Option<PathBuf>,

    /// Private key for --tls-cert, in PEM, without a password
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    #[arg(help_heading = "Sending to collectors", hide_short_help = true)]
    tls_key: Option<PathBuf>,

    /// Private enterprise number of the information elements that IANA does not define
    ///
    /// The default is the number reserved for documentation: set the number of your organisation.
    #[arg(long, value_name = "N", default_value_t = turboflow_record::DOCUMENTATION_ENTERPRISE)]
    #[arg(help_heading = "Sending to collectors", hide_short_help = true)]
    enterprise_number: u32,

    /// Metering threads per reader, each with a share of the flows
    ///
    /// With more than 1, another thread reads and parses. Records are the same for any number.
    /// Default: 1, which also reads and parses; for capture files, a second thread reads and parses
    /// if there are two processors.
    #[arg(long, value_name = "N", value_parser = str::parse::<Count>)]
    #[arg(help_heading = "Memory and speed")]
    threads: Option<Count>,

    /// Threads that read the interfaces, each with its own rings and its own --threads
    ///
    /// Packets are distributed by their pair of IP addresses, so that a flow stays with one reader.
    /// It cannot be combined with --decapsulate.
    #[arg(long, value_name = "N", default_value = "1", value_parser = str::parse::<Count>)]
    #[arg(
        conflicts_with = "read",
        help_heading = "Memory and speed",
        hide_short_help = true
    )]
    readers: Count,

    /// Maximum number of open flows, over all threads
    ///
    /// At the limit, the oldest flows end early with end reason 5, and are counted. Worst-case
    /// memory with the default definition is about 245 bytes per flow, because each IP version has
    /// its own table and may fill it: 2.5 GB at the default limit. Only a flood takes that much.
    /// A line on standard error shows how much memory this run may take.
    #[arg(long, value_name = "N", default_value = "10M", value_parser = str::parse::<Count>)]
    #[arg(help_heading = "Memory and speed")]
    max_flows: Count,

    /// Find the applications of flows in the payload of their first packets (nDPI)
    ///
    /// A process without rights inspects at most 32 packets of a TCP flow and 24 of any other flow.
    /// Records get columns for application, category, confidence and server name, unless the
    /// definition has features with inputs of inspection: `application`, `application_category`,
    /// `application_confidence`, `risk`, `server_name`, `ja3`, `ja4`, `dns_query_name` or
    /// `http_host`, with op `last`. Nothing else in a record changes.
    #[arg(long, help_heading = "What a flow is")]
    dpi: bool,

    /// Maximum number of flows under inspection, with --dpi
    ///
    /// At the limit, the oldest inspection ends with what it has found so far.
    #[arg(long, value_name = "N", default_value = "65536", value_parser = str::parse::<Count>)]
    #[arg(help_heading = "Memory and speed", hide_short_help = true)]
    dpi_flows: Count,

    /// Slots of the microflow table in front of the flow cache, over all threads
    ///
    /// Default: 32,768 per thread; the table is bypassed while too few packets hit. If a number is
    /// given, the table is never bypassed. For the engine in the kernel: slots of each of its
    /// tables, by default 16,384. Flow records do not depend on this number.
    #[arg(long, value_name = "N", value_parser = str::parse::<Count>, help_heading = "Memory and speed")]
    #[arg(hide_short_help = true)]
    microflow_slots: Option<Count>,

    /// Seed of the hash function
    ///
    /// Default: random, so that an attacker cannot choose keys that collide. The seed is printed at
    /// the start. It changes the order of records, but not the records.
    #[arg(long, value_name = "N", value_parser = str::parse::<Seed>, help_heading = "Memory and speed")]
    #[arg(hide_short_help = true)]
    seed: Option<Seed>,

    /// Serve Prometheus metrics and a health page at this address, such as 127.0.0.1:9414
    ///
    /// The paths are /metrics and /healthz; `none` disables both. Anyone who reaches the address
    /// can read both.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = str::parse::<MetricsAt>, conflicts_with = "read")]
    #[arg(help_heading = "Service")]
    metrics: Option<MetricsAt>,

    /// Switch to this user once the interfaces are open: a name or UID:GID
    ///
    /// Requires a start as root. This user creates the outputs.
    #[arg(
        long,
        value_name = "USER",
        conflicts_with = "read",
        help_heading = "Service"
    )]
    #[arg(hide_short_help = true)]
    user: Option<String>,

    /// Print these options as a configuration of `turboflow run`, and exit
    #[arg(long, help_heading = "Service", hide_short_help = true)]
    pub(crate) print_config: bool,
}

impl RecordArgs {
    /// Converts the flags into a run.
    pub(crate) fn into_run(mut self) -> anyhow::Result<RunConfig> {
        filter::separate(&mut self.read, &mut self.filter, self.decapsulate.as_ref())?;
        self.read = super::inputs::captures(self.read, self.quiet)?;
        let engine = self.engine.clone().into_config(self.microflow_slots)?;
        let is_live = self.read.is_empty() && self.interface.len() + self.cpu_port.len() > 0;
        let outputs = shared::spread(&self.shared(), &self.write, is_live || engine.listens())?;
        let run = RunConfig {
            bridge: BridgeConfig::default(),
            source: SourceConfig {
                files: self.read,
                interfaces: self.interface,
                cpu_ports: self.cpu_port,
                filter: filter::joined(&self.filter),
                duration: self.duration,
                packets: self.packets,
                snap_length: self.snap_length,
                promiscuous: !self.no_promiscuous,
                ring_size: self.ring_size,
                readers: self.readers,
            },
            engine,
            flow: FlowConfig {
                definition: self.definition,
                biflow: self.biflow,
                initiator: self.initiator,
                decapsulate: self.decapsulate.unwrap_or_default(),
                reassemble: self.reassemble_flows,
                icmp_ports: self.icmp_ports,
                int_dscp: self.telemetry.int_dscp,
                int_port: self.telemetry.int_port,
                int_report_port: self.telemetry.int_report_port,
            },
            timeouts: TimeoutsConfig {
                idle: self.idle_timeout,
                active: self.active_timeout,
                linger: self.linger,
                align: self.align,
            },
            meter: MeterConfig {
                threads: self.threads,
                max_flows: self.max_flows,
                seed: self.seed,
                dpi: self.dpi,
                dpi_flows: self.dpi_flows,
            },
            service: ServiceConfig {
                metrics: self.metrics,
                user: self.user,
                exporter: self.exporter,
                ledger: self.ledger,
                quiet: self.quiet,
                log_format: self.log_format,
                sync: self.sync.then_some(true),
                follow_links: self.follow_links,
            },
            outputs,
        };
        Ok(run)
    }

    /// The options that apply to all outputs.
    fn shared(&self) -> OutputConfig {
        OutputConfig {
            format: self.format,
            text_time: self.time,
            names: self.names,
            parquet_types: self.parquet_types,
            rotate: self.rotate,
            rotate_size: self.rotate_size,
            rotate_by: self.rotate_by,
            keep: self.keep,
            keep_size: self.keep_size,
            anonymize: self.anonymize.clone(),
            identity: self.identity,
            rate: self.export_rate,
            mtu: self.export_mtu,
            template_interval: self.template_interval,
            options: !self.no_export_options,
            time_unit: self.export_time,
            observation_domain: self.observation_domain,
            enterprise_number: self.enterprise_number,
            tls_ca: self.tls_ca.clone(),
            tls_cert: self.tls_cert.clone(),
            tls_key: self.tls_key.clone(),
            ..OutputConfig::default()
        }
    }
}
