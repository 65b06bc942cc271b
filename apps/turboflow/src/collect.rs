// SPDX-License-Identifier: Apache-2.0
//! `turboflow collect`: flow records of routers and other probes in, flow records out.

use anyhow::bail;
use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use turboflow_run::RunConfig;

use crate::engines;
use crate::exit::Outcome;
use crate::keys::Key;
use crate::record::{self, RecordArgs};

/// The engine that receives flow records.
const ENGINE: &str = "collector";

/// Follows the options in `-h`, which is one screen.
const SHORT: &str = "--help has all options, examples and exit codes.";

const EXAMPLES: &str = "\
Examples:
  Collect what routers send, until Ctrl-C
    turboflow collect --listen udp://:2055,udp://:4739,tcp://:4739 -w flows.parquet
  Routers with an active timeout of 30 minutes, which sample one packet of 1,000
    turboflow collect --listen udp://:2055 --collector-lag 31m --scale-sampled -w flows.parquet
  Merge the records of several files
    turboflow collect -r monday.ipfix tuesday.ipfix -w flows.csv
  Pass the records on to another collector
    turboflow collect --listen udp://:2055 -w ipfix+tcp://collector.example:4739

Records of all exporters are merged as if their packets were metered here: the parts of a flow are
one flow record again, and gaps in sequence numbers are in the ledger (docs/collector.md).

Exit codes: 0 all well; 1 it ran, but records were lost, or a file was damaged; 2 it could not run;
130 aborted by a second Ctrl-C.";

/// Flags of `turboflow record` that make no sense for received flow records.
const NO_USE: [&str; 17] = [
    "interface",
    "cpu-port",
    "filter",
    "no-promiscuous",
    "ring-size",
    "readers",
    "snap-length",
    "microflow-slots",
    "biflow",
    "initiator",
    "decapsulate",
    "reassemble-flows",
    "int-dscp",
    "int-port",
    "int-report-port",
    "dpi",
    "dpi-flows",
];

/// Flags that `-h` shows.
const MOST_USED: [&str; 16] = [
    "listen",
    "read",
    "collector-lag",
    "collector-records",
    "scale-sampled",
    "write",
    "format",
    "ledger",
    "rotate",
    "quiet",
    "duration",
    "definition",
    "metrics",
    "idle-timeout",
    "active-timeout",
    "max-flows",
];

/// Receive flow records from routers and other probes: IPFIX, NetFlow v9, v5, sFlow.
#[derive(Debug, Args)]
#[command(
    about = "Receive flow records from routers and other probes: IPFIX, NetFlow v9, v5, sFlow"
)]
#[command(long_about = "\
Receive flow records from routers and other probes: IPFIX, NetFlow v9, v5, sFlow.

Flow records of other exporters are merged like the microflow records of our own engines: they are
sorted by time, go through the same flow cache, and are written to the same outputs. The command is
`turboflow record --engine collector`, where -r names files of IPFIX or NetFlow v5 messages.")]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct CollectArgs {
    #[command(flatten)]
    record: RecordArgs,
}

/// Hides flags that make no sense for received flow records. `-h` shows only the most used ones.
pub(crate) fn hide_other_flags(command: Command) -> Command {
    let command = command.mut_arg("read", |arg| {
        arg.help("Files of IPFIX or NetFlow v5 messages; `-` is standard input")
            .long_help("Files of IPFIX or NetFlow v5 messages; `-` is standard input")
            .conflicts_with("listen")
    });
    let command = command.mut_arg("engine", |arg| {
        arg.default_value(ENGINE)
            .value_parser(PossibleValuesParser::new([ENGINE]))
    });
    let mut hidden = engines::flags_of_others(&[ENGINE]);
    hidden.extend(NO_USE);
    hidden.extend(["engine", "flows-from"]);
    engines::show_flags(command, &hidden, &MOST_USED)
}

/// Refuses options about packets.
fn refuse_others(run: &RunConfig) -> anyhow::Result<()> {
    let mut usual = RunConfig::default();
    ENGINE.clone_into(&mut usual.engine.name);
    let given = run.keys_that_differ(&usual);
    let is_given = |key: &Key| given.contains(&format!("{}.{}", key.section(), key.name()));
    let mut keys = Key::all().filter(|key| NO_USE.contains(&key.flag()));
    let of_other = engines::foreign_option(run, engines::kind_of(run)?);
    let of_other = of_other.map(|(_, option)| Key::Of(option));
    match keys.find(is_given).or(of_other) {
        Some(key) => bail!(
            "{key} is of no use here: `turboflow collect` receives flow records, not packets; \
             leave it out{}",
            engines::meant_file(run)
        ),
        None => Ok(()),
    }
}

pub(crate) fn run(args: CollectArgs) -> anyhow::Result<Outcome> {
    let (log_format, is_printed) = (args.record.log_format, args.record.print_config);
    let mut run = args.record.into_run()?;
    refuse_others(&run)?;
    engines::collector::settle(&mut run)?;
    match is_printed {
        true if !run.goes_on() => bail!(
            "a service listens for records: add {} instead of {}",
            engines::collector::example_to_listen(),
            Key::Files
        ),
        true => record::print_config(&run),
        false => record::collect(&run, log_format),
    }
}
