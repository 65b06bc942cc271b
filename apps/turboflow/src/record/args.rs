// SPDX-License-Identifier: Apache-2.0
//! `turboflow record` as typed.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use turboflow_formats::Format;
use turboflow_packet::TunnelSet;
use turboflow_record::TimeUnit;
use turboflow_run::{
    Count, CountAboveZero, EngineConfig, FlowConfig, Interval, Linger, LogFormat, MeterConfig,
    MetricsAt, Mtu, OutputConfig, Rotation, RunConfig, Seed, ServiceConfig, Size, SnapLength,
    SourceConfig, Time, Timeout, TimeoutsConfig,
};

use super::{filter, shared};
use crate::engines::{Clock, EngineName, Mode, Table, XdpOptions};
use crate::units::time_unit;

const EXAMPLES: &str = "\
Examples:
  Look at a capture: totals, top flow records, protocols, and where every packet went
    turboflow record -r office.pcap
  Keep the flow records, as Parquet and as CSV
    turboflow record -r office.pcap -w flows.parquet -w flows.csv
  Meter a whole directory as one stream of packets, on four threads
    turboflow record -r day/*.pcap.zst -w day.parquet --threads 4
  Meter an interface until Ctrl-C, or for a minute; records are written as flows end
    turboflow record -i eth0 -w - --format jsonl
    turboflow record -i eth0 -i eth1 --duration 1m -w minute.parquet
  The same in the kernel, where packets arrive: a fraction of the work
    turboflow record -i eth0 --engine xdp -w flows.parquet
  A file every five minutes, named by its beginning
    turboflow record -i eth0 -w flows-%Y%m%dT%H%M%S.parquet --rotate 5m
  Only some packets, in the words of tcpdump
    turboflow record -i eth0 'tcp port 443'
    turboflow record -r office.pcap 'net 192.0.2.0/24 and not port 53'
  Send them to a collector, and keep them
    turboflow record -r office.pcap -w ipfix+udp://127.0.0.1:4739 -w flows.parquet
  In a pipe
    ssh router tcpdump -i eth0 -w - | turboflow record -r - -w - --format csv | head
  The exact totals of every flow, whatever its pauses
    turboflow record -r office.pcap -w totals.csv \\
        --idle-timeout none --active-timeout none --linger none
  What is inside the tunnels, both directions in one record
    turboflow record -r office.pcap -w inner.csv --decapsulate --reassemble-flows --biflow

Exit codes:
  0  all well; also when the reader of standard output went away (`| head`)
  1  it ran, but a capture was damaged, records could not be written or sent, packets had an unknown
     link type, the kernel dropped packets of an interface, an interface went away, or Ctrl-C ended
     the reading of files early: standard error says which and how much
  2  it could not run (options, definition, missing or foreign files); no output was touched
  130  aborted by a second Ctrl-C; the unfinished outputs are removed
Packets that the capturing side of a file lost (source_dropped) and frames that are not IP,
malformed or truncated are counted and said; they are information, no failure.";

/// Meter capture files or network interfaces: packets in, flow records out.
///
/// Reads pcap and pcapng (plain, gzip or zstd), or captures from interfaces (Linux), and writes one record for every flow: by default the
/// unidirectional IP 5-tuple with packets, bytes, times, TCP flags, lengths, TTL and type of
/// service. Without -w it prints what a person wants to see first. Every packet is in a flow record
/// or in a counter that says why not; the sums are checked at the end of every run.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecordArgs {
    /// Capture files, metered one after the other as one stream; `-` is standard input
    #[arg(short, long = "read", value_name = "FILE", num_args = 1..)]
    #[arg(
        required_unless_present = "interface",
        help_heading = "Input and output"
    )]
    read: Vec<PathBuf>,

    /// Interface to capture from, until Ctrl-C, SIGTERM or a limit; repeat for more. Needs the right
    /// to capture (CAP_NET_RAW)
    #[arg(short, long, value_name = "IFACE", conflicts_with = "read")]
    #[arg(help_heading = "Input and output")]
    interface: Vec<String>,

    /// Only packets of which this is true, as tcpdump has it (`man pcap-filter`), in one argument or
    /// several; needs libpcap. Behind -r FILE, the first word that is no file and begins an
    /// expression begins it; `--` does so in any case
    #[arg(value_name = "FILTER", help_heading = "Input and output")]
    filter: Vec<String>,

    /// Write flow records here; repeat for more outputs. The format follows from the extension:
    /// .csv, .jsonl (also .ndjson, .json), .parquet or .ipfix. `-` is standard output. Or send them
    /// to a collector: ipfix+udp://HOST:PORT, ipfix+tcp://, ipfix+tls://, netflow9+udp://,
    /// netflow5+udp://. Without -w, a summary is printed instead
    #[arg(
        short,
        long = "write",
        value_name = "OUT",
        help_heading = "Input and output"
    )]
    write: Vec<PathBuf>,

    /// Format of outputs whose name has no extension that says it, such as `-w -`: csv, jsonl,
    /// parquet or ipfix
    #[arg(long, value_name = "FORMAT", help_heading = "Input and output")]
    format: Option<Format>,

    /// Write every counter of the run as JSON, with seed, version, sizes, damage and outputs
    #[arg(long, value_name = "FILE.json", help_heading = "Input and output")]
    ledger: Option<PathBuf>,

    /// Begin a new file so often, such as 5m, aligned to the clock (UTC). Concerns files whose names
    /// have a time, such as -w flows-%Y%m%dT%H%M%S.parquet; a file has its name once it is complete
    #[arg(long, value_name = "TIME", value_parser = str::parse::<Rotation>, conflicts_with = "read")]
    #[arg(help_heading = "Input and output")]
    rotate: Option<Rotation>,

    /// Begin a new file when one has so many bytes, such as 1GiB; Parquet by whole row groups
    #[arg(long, value_name = "SIZE", value_parser = str::parse::<Size>, conflicts_with = "read")]
    #[arg(help_heading = "Input and output")]
    rotate_size: Option<Size>,

    /// No progress bar and no summary on standard error; errors and losses are still said
    #[arg(short, long, help_heading = "Input and output")]
    quiet: bool,

    /// Lines on standard error: auto (text, in systemd's journal with levels), json (an object a
    /// line) or text
    #[arg(long, value_parser = log_format(), hide_possible_values = true)]
    #[arg(default_value = "auto", value_name = "FORMAT")]
    #[arg(help_heading = "Input and output")]
    pub(super) log_format: LogFormat,

    /// Where packets become microflow records: software (here, from packets that the kernel copies to a ring) or xdp (in
    /// the kernel, where packets arrive; Linux, root). The engine in the kernel sees packets that come in, not those that this
    /// host sends
    #[arg(long, value_enum, default_value_t = EngineName::Software, conflicts_with = "read")]
    #[arg(
        hide_possible_values = true,
        value_name = "ENGINE",
        help_heading = "Engine"
    )]
    engine: EngineName,

    /// xdp: where a packet meets it: native (in the driver), generic (behind it: slower, on every interface), or auto, which
    /// is native where the driver can
    #[arg(long, value_enum, default_value_t = Mode::Auto, conflicts_with = "read")]
    #[arg(
        hide_possible_values = true,
        value_name = "MODE",
        help_heading = "Engine"
    )]
    xdp_mode: Mode,

    /// xdp: per-cpu, a microflow table on every CPU, or row-lock, one for all with a lock for each row: for flows whose
    /// packets come to several CPUs, so that their records do not overlap in time. Totals are the same
    #[arg(long, value_enum, default_value_t = Table::PerCpu, conflicts_with = "read")]
    #[arg(
        hide_possible_values = true,
        value_name = "TABLE",
        help_heading = "Engine"
    )]
    table: Table,

    /// xdp: precise (nanoseconds), or coarse, the kernel's tick: packets cost less, and times are up to 10 ms too early
    #[arg(long, value_enum, default_value_t = Clock::Precise, conflicts_with = "read")]
    #[arg(
        hide_possible_values = true,
        value_name = "CLOCK",
        help_heading = "Engine"
    )]
    xdp_clock: Clock,

    /// xdp: packets end here once they are metered, as they should where a mirror port only brings copies. Never on an
    /// interface that somebody needs: it goes deaf. Default: they pass on
    #[arg(long, conflicts_with = "read", help_heading = "Engine")]
    xdp_drop: bool,

    /// xdp: write frames that are no packet (not IP, or malformed) into this capture file, for somebody to look at: those of all
    /// interfaces, 20 MiB a second at most; more are counted, and that is all. The software engine has no such file: tcpdump has
    #[arg(long, value_name = "FILE.pcap", conflicts_with = "read")]
    #[arg(help_heading = "Engine")]
    unparsed_to: Option<PathBuf>,

    /// xdp: take the place of an XDP program that is on the interface already. It is not put back
    #[arg(long, conflicts_with = "read", help_heading = "Engine")]
    replace: bool,

    /// End after so much time, such as 10s
    #[arg(long, value_name = "TIME", value_parser = str::parse::<Time>, conflicts_with = "read")]
    #[arg(help_heading = "Interfaces")]
    duration: Option<Time>,

    /// End after so many packets; with --engine xdp, soon after
    #[arg(long, value_name = "N", value_parser = str::parse::<CountAboveZero>, conflicts_with = "read")]
    #[arg(help_heading = "Interfaces")]
    packets: Option<CountAboveZero>,

    /// Bytes kept of a packet; at least 128 keep the headers of most. Default: all. With --engine xdp, of a frame that
    /// --unparsed-to writes, and 16,384
    #[arg(
        long,
        value_name = "BYTES",
        conflicts_with = "read",
        help_heading = "Interfaces"
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(14..))]
    snap_length: Option<u32>,

    /// Only frames that are for this host, not all that the interface sees
    #[arg(long, conflicts_with = "read", help_heading = "Interfaces")]
    no_promiscuous: bool,

    /// Memory in which the kernel keeps packets of one interface until they are read, for each
    /// reader, from 64KiB to 2GiB; where it is full, packets are dropped and counted. With --engine xdp, of microflow
    /// records, for all interfaces: a power of two, or the next lower one
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = str::parse::<Size>)]
    #[arg(conflicts_with = "read", help_heading = "Interfaces")]
    ring_size: Size,

    /// What a flow record holds, as TOML; `turboflow definition` prints the default
    #[arg(long, value_name = "FILE", help_heading = "What a flow is")]
    definition: Option<PathBuf>,

    /// Join the two directions of a conversation into one record (RFC 5103)
    #[arg(long, help_heading = "What a flow is")]
    biflow: bool,

    /// Enter tunnels: the innermost packet is the flow. All of them, or of ipip, 6in4, gre, vxlan,
    /// geneve, gtp-u, teredo, l2tp those listed with commas. Default: none
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "all", help_heading = "What a flow is")]
    decapsulate: Option<TunnelSet>,

    /// Give later fragments the ports of their first fragment, so that a fragmented datagram is in
    /// one flow. Knows 65,536 datagrams at a time (88 MB) for 30 s. Default: ports 0/0
    #[arg(long, help_heading = "What a flow is")]
    reassemble_flows: bool,

    /// ICMP type * 256 + code as destination port, as in NetFlow. Default: ports 0/0
    #[arg(long, help_heading = "What a flow is")]
    icmp_ports: bool,

    /// A flow without packets for longer is over. A number with ns, us, ms, s, m, h or d; `none`
    /// switches it off
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = str::parse::<Timeout>)]
    #[arg(help_heading = "When flows end")]
    idle_timeout: Timeout,

    /// No record lasts longer; the flow goes on in the next record. `none` switches it off
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = str::parse::<Timeout>)]
    #[arg(help_heading = "When flows end")]
    active_timeout: Timeout,

    /// How long a flow that saw FIN or RST waits for its last packets; may be 0. `none`: FIN and
    /// RST end nothing
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = str::parse::<Linger>)]
    #[arg(help_heading = "When flows end")]
    linger: Linger,

    /// Flow records a second that a collector is sent at most, such as 50k. A capture is read as
    /// fast as its records leave. Default: as fast as the socket takes them
    #[arg(long, value_name = "N", value_parser = str::parse::<CountAboveZero>)]
    #[arg(help_heading = "Sending to collectors")]
    export_rate: Option<CountAboveZero>,

    /// Bytes of a message over UDP at most. The default leaves room for IPv6, UDP and a tunnel on
    /// paths with an MTU of 1500; lower it where yours is smaller, so that nothing is fragmented
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1400,
        help_heading = "Sending to collectors"
    )]
    #[arg(value_parser = clap::value_parser!(u16).range(512..=65_507))]
    export_mtu: u16,

    /// Send templates and options again so often over UDP, as well as every 4,096 messages: a collector
    /// that was started anew, or missed them, reads no flow before. Over TCP, statistics only
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = str::parse::<Interval>)]
    #[arg(help_heading = "Sending to collectors")]
    template_interval: Interval,

    /// Send templates and flow records only: no sampling, statistics, or descriptions of elements.
    /// For collectors that take such records for lost ones (nfcapd 1.7 does, of IPFIX)
    #[arg(long, help_heading = "Sending to collectors")]
    no_export_options: bool,

    /// Unit of a flow's first and last time in IPFIX: ms (every collector knows it), us or ns
    #[arg(long, value_name = "UNIT", default_value = "ms", value_parser = time_unit)]
    #[arg(help_heading = "Sending to collectors")]
    export_time: TimeUnit,

    /// Observation domain of IPFIX, source id of NetFlow v9; its low 8 bits are the engine id of v5.
    /// Default: one for each run and output, made of the process id, so that two exporters on a host
    /// are never taken for one; 1 in files
    #[arg(long, value_name = "N", help_heading = "Sending to collectors")]
    observation_domain: Option<u32>,

    /// Certificates of the authorities that collectors over TLS are trusted by, in PEM. Default: those
    /// that the system trusts
    #[arg(long, value_name = "FILE", help_heading = "Sending to collectors")]
    tls_ca: Option<PathBuf>,

    /// Certificate by which collectors over TLS know us, in PEM, with those between it and its
    /// authority behind it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    #[arg(help_heading = "Sending to collectors")]
    tls_cert: Option<PathBuf>,

    /// Key of that certificate, in PEM, without a password
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    #[arg(help_heading = "Sending to collectors")]
    tls_key: Option<PathBuf>,

    /// Private enterprise number of the information elements that IANA does not have. The default
    /// is the number for documentation: set your organisation's
    #[arg(long, value_name = "N", default_value_t = turboflow_record::DOCUMENTATION_ENTERPRISE)]
    #[arg(help_heading = "Sending to collectors")]
    enterprise_number: u32,

    /// Threads that meter, each with a share of the flows, for each reader; more than 1 adds a thread
    /// that reads and parses. Records are the same whatever the number. Default: 1, which reads and
    /// parses, too; of capture files a second one does, if there are two processors
    #[arg(long, value_name = "N", value_parser = str::parse::<Count>)]
    #[arg(help_heading = "Memory and speed")]
    threads: Option<Count>,

    /// Threads that read the interfaces, each with rings of its own and --threads of its own. Packets
    /// are dealt out to them by their pair of IP addresses, so that a flow stays with one. Not with
    /// --decapsulate
    #[arg(long, value_name = "N", default_value = "1", value_parser = str::parse::<Count>)]
    #[arg(conflicts_with = "read", help_heading = "Memory and speed")]
    readers: Count,

    /// Flows open at once, over all threads. When it is full, the oldest leave early with end
    /// reason 5, counted. Worst-case memory with the default definition: about 245 bytes for each
    /// (either IP version may fill its own table), 2.4 GB at the default, taken only under a flood;
    /// the first line on standard error says what this run may take
    #[arg(long, value_name = "N", default_value = "10M", value_parser = str::parse::<Count>)]
    #[arg(help_heading = "Memory and speed")]
    max_flows: Count,

    /// Slots of the microflow table in front of the flow cache, over all threads, always used.
    /// Default: 32,768 a thread, set aside while too few packets hit. With --engine xdp, of each table of the
    /// kernel's, and 16,384. Records are the same whatever the number
    #[arg(long, value_name = "N", value_parser = str::parse::<Count>, help_heading = "Memory and speed")]
    microflow_slots: Option<Count>,

    /// Seed of the hash function. Default: random, so that nobody can choose keys that collide; it
    /// is printed. Records are the same whatever the seed, their order is not
    #[arg(long, value_name = "N", value_parser = str::parse::<Seed>, help_heading = "Memory and speed")]
    seed: Option<Seed>,

    /// Serve metrics for Prometheus (/metrics) and a health page (/healthz) at this address, such as
    /// 127.0.0.1:9414; `none` serves none. Whoever reaches the address may read them
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = str::parse::<MetricsAt>, conflicts_with = "read")]
    #[arg(help_heading = "Service")]
    metrics: Option<MetricsAt>,

    /// Become this user, a name or UID:GID, once the interfaces are open; started as root. Outputs
    /// are created by that user
    #[arg(
        long,
        value_name = "USER",
        conflicts_with = "read",
        help_heading = "Service"
    )]
    user: Option<String>,

    /// Print these options as a configuration of `turboflow run`, and end
    #[arg(long, help_heading = "Service")]
    pub(super) print_config: bool,
}

fn log_format() -> impl TypedValueParser<Value = LogFormat> {
    let names = LogFormat::NAMES.map(|(name, _)| name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<LogFormat>())
}

impl RecordArgs {
    /// What the flags mean.
    pub(crate) fn into_run(mut self) -> anyhow::Result<RunConfig> {
        filter::separate(&mut self.read, &mut self.filter, self.decapsulate.as_ref())?;
        let outputs = shared::spread(&self.shared(), &self.write, !self.interface.is_empty())?;
        let xdp = XdpOptions {
            mode: self.xdp_mode,
            table: self.table,
            clock: self.xdp_clock,
            drop: self.xdp_drop,
            replace: self.replace,
            unparsed_to: self.unparsed_to,
        };
        let mut run = RunConfig {
            source: SourceConfig {
                files: self.read,
                interfaces: self.interface,
                filter: filter::joined(&self.filter),
                duration: self.duration,
                packets: self.packets,
                snap_length: self.snap_length.map(SnapLength),
                promiscuous: !self.no_promiscuous,
                ring_size: self.ring_size,
                readers: self.readers,
            },
            engine: EngineConfig {
                name: self.engine.as_str().to_owned(),
                microflow_slots: self.microflow_slots,
                ..EngineConfig::default()
            },
            flow: FlowConfig {
                definition: self.definition,
                biflow: self.biflow,
                decapsulate: self.decapsulate.unwrap_or_default(),
                reassemble: self.reassemble_flows,
                icmp_ports: self.icmp_ports,
            },
            timeouts: TimeoutsConfig {
                idle: self.idle_timeout,
                active: self.active_timeout,
                linger: self.linger,
            },
            meter: MeterConfig {
                threads: self.threads,
                max_flows: self.max_flows,
                seed: self.seed,
            },
            service: ServiceConfig {
                metrics: self.metrics,
                user: self.user,
                ledger: self.ledger,
                quiet: self.quiet,
                log_format: self.log_format,
            },
            outputs,
        };
        xdp.say_to(&mut run)?;
        Ok(run)
    }

    /// The options that are said once for all outputs.
    fn shared(&self) -> OutputConfig {
        OutputConfig {
            format: self.format,
            rotate: self.rotate,
            rotate_size: self.rotate_size,
            rate: self.export_rate,
            mtu: Mtu(self.export_mtu),
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
