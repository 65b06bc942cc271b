// SPDX-License-Identifier: Apache-2.0
//! `turboflow alert`: rules over files of flow records, and where alerts go.

mod follow;
mod send;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use turboflow_alert::{Alert, Rule, RuleError, State, find, json, rules};
use turboflow_query::{Enrichment, Input, QueryError, last_packet_until};

use crate::enrich::say_taken;
use crate::enrich_args::EnrichArgs;
use crate::exit::{Outcome, print};
use crate::keys::nearest;
use crate::log::say;
use crate::show::{clock_ns, found, pipe_of, say_damages};
use crate::units::grouped;
use send::Receiver;

const EXAMPLES: &str = "\
Examples:
  What was odd on this day?
    turboflow alert flows/2024/03/01 --rules rules.toml
  Every file of a service, as soon as it is complete (the service logs in JSON)
    turboflow run --config service.toml 2>&1 |
      turboflow alert --follow --rules rules.toml --state alerts.json \\
        --to syslog+udp://127.0.0.1:514
  To Alertmanager, and to a program of your own
    turboflow alert flows.parquet --rules rules.toml --to alertmanager+http://127.0.0.1:9093 \\
      --to http://127.0.0.1:8080/alerts

A rule, with a limit of 100 ports of one host in five minutes:
  [[rule]]
  name = \"port-scan\"
  summary = \"{src_addr} asked for {value} ports of {dst_addr}\"
  where = \"tcp and tcp_flags has S and not tcp_flags has A\"
  group_by = \"src_addr,dst_addr\"
  distinct = \"dst_port\"
  above = 100
  period_s = 300

contrib/alerts/rules.toml in the sources has more rules; docs/alerts.md describes the keys.

Exit codes: 0 all well, with alerts or without; 1 a file was cut, a file could not be read
with --follow, or alerts could not be sent; 2 it could not run.";

/// Find anomalies in flow records by rules, and send alerts
///
/// Prints a JSON object for each alert. Rules are questions in the language of `turboflow show`
/// with a limit.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct AlertArgs {
    /// Files of flow records, folders or patterns: they are read as one
    #[arg(
        value_name = "FILE",
        required_unless_present = "follow",
        conflicts_with = "follow"
    )]
    files: Vec<PathBuf>,

    /// The rules, in TOML
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,

    /// State of rules about new and silent groups; created if it does not exist
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// Where alerts are sent: http://HOST:PORT/PATH, alertmanager+http://HOST:PORT or
    /// syslog+udp://HOST:PORT. Repeat for more
    #[arg(long, value_name = "URL")]
    to: Vec<String>,

    /// Read a JSON log from standard input, and apply the rules to each file it reports complete.
    /// Other lines are passed on to standard error
    #[arg(long)]
    follow: bool,

    #[command(flatten)]
    enrich: EnrichArgs,
}

/// How far ahead of this machine's clock a record may be, in seconds, if no rule detects silence.
const AHEAD_S: u64 = 600;

pub(crate) fn run(args: &AlertArgs) -> anyhow::Result<Outcome> {
    let place = args.rules.display();
    let text = fs::read_to_string(&args.rules);
    let text = text.with_context(|| format!("cannot read the rules {place}"))?;
    let receivers = args.to.iter().map(|url| Receiver::parse(url));
    let mut asking = Asking {
        args,
        rules: rules(&text).map_err(|error| match error {
            RuleError::Empty => anyhow!("{place}: {error}"),
            error => anyhow!("{place}, {error}"),
        })?,
        receivers: receivers.collect::<anyhow::Result<Vec<_>>>()?,
        enrichment: args.enrich.files().read()?,
        state: args.read_state()?,
        told: BTreeSet::new(),
    };
    asking.say_without_state();
    match args.follow {
        true => follow::follow(&mut asking, io::stdin().lock()),
        false => asking.ask(&found(&args.files)?),
    }
}

impl AlertArgs {
    fn read_state(&self) -> anyhow::Result<State> {
        let Some(path) = self.state.as_deref().filter(|path| path.exists()) else {
            return Ok(State::default());
        };
        let text = fs::read_to_string(path).context("cannot read the state")?;
        let wrong = "it is not a state of `turboflow alert`: remove it, or name another file";
        State::parse(&text).map_err(|error| anyhow!("{}: {error}: {wrong}", path.display()))
    }
}

/// The rules, and what persists between the files that they are evaluated on.
struct Asking<'a> {
    args: &'a AlertArgs,
    rules: Vec<Rule>,
    receivers: Vec<Receiver>,
    enrichment: Option<Arc<Enrichment>>,
    state: State,
    /// Messages already logged, so that they are not repeated for each file.
    told: BTreeSet<String>,
}

impl Asking<'_> {
    /// Says which rules find nothing, because nothing is known from before.
    fn say_without_state(&self) {
        let is_kept = self.args.follow || self.args.state.is_some();
        let names = self.rules.iter().filter(|rule| rule.is_about_new_groups());
        let names: Vec<&str> = names.map(|rule| rule.name.as_str()).collect();
        if !is_kept && !names.is_empty() {
            say!(Warning AnswerNote;
                "rules of the kind `new` find nothing without --state FILE, which keeps what \
                 earlier files had: {}",
                names.join(", "));
        }
    }

    /// Evaluates all rules on `files`, and sends the alerts.
    fn ask(&mut self, files: &[PathBuf]) -> anyhow::Result<Outcome> {
        if let Some(place) = pipe_of(files) {
            bail!(
                "{place} can be read once, but records are read for their last time and then for \
                 each rule: write them to a file first"
            );
        }
        let mut whole = Input::open(files)?;
        let clock_ns = self.clock(&mut whole)?;
        let mut outcome = say_damages(&whole);
        let (mut alerts, mut lacking) = (Vec::new(), Vec::new());
        // A rule that does not fit the records must not suppress the alerts of other rules.
        let mut wrong = None;
        let (mut evaluated, mut failed) = (0, false);
        let mut columns = Vec::new();
        for index in 0..self.rules.len() {
            let mut input = whole.again(files);
            self.enrich(&mut input);
            if columns.is_empty() {
                columns.extend(input.schema().iter().map(|column| column.name.clone()));
            }
            let rule = &self.rules[index];
            match find(rule, input, clock_ns, &mut self.state) {
                Ok(found) => {
                    let name = &rule.name;
                    evaluated += usize::from(found.lacks.is_none());
                    lacking.extend(found.lacks.map(|column| (name.clone(), column)));
                    if found.left_out > 0 {
                        say!(Warning AnswerNote; "rule {name:?}: {} more alerts are left out",
                            found.left_out);
                    }
                    alerts.extend(found.alerts);
                }
                Err(error) => {
                    failed = true;
                    let does_not_fit = matches!(error, QueryError::Question(_));
                    let place = self.args.rules.display();
                    let error = anyhow!(error).context(format!("{place}, rule {:?}", rule.name));
                    if does_not_fit {
                        wrong.get_or_insert(error);
                    } else {
                        outcome = Outcome::Lossy;
                        say!(Error CouldNotRun; "{}", crate::exit::in_words(&error));
                    }
                }
            }
        }
        self.say_passed_over(&lacking, &columns);
        if alerts.is_empty() && !failed && !self.args.follow {
            say!(Info AnswerNote; "no alerts; rules evaluated: {evaluated}");
        }
        // Send first: a failure to print must not lose alerts.
        if !self.send(&alerts) {
            outcome = Outcome::Lossy;
        }
        let text: String = alerts
            .iter()
            .map(|alert| format!("{}\n", json(alert)))
            .collect();
        let printed = print(&text);
        if let Some(path) = &self.args.state {
            write_state(path, &self.state)?;
        }
        printed?;
        wrong.map_or(Ok(outcome), Err)
    }

    /// Sends alerts to each receiver. Returns whether all of them accepted.
    fn send(&self, alerts: &[Alert]) -> bool {
        let mut are_sent = true;
        for receiver in self.receivers.iter().filter(|_| !alerts.is_empty()) {
            if let Err(error) = receiver.send(alerts) {
                are_sent = false;
                say!(Error OutputFailed, output = receiver.host();
                    "{}: {} alerts were not sent: {}",
                    receiver.host(), alerts.len(), crate::exit::in_words(&error));
            }
        }
        are_sent
    }

    /// The time of the last packet, in nanoseconds. Records far ahead of this machine's clock are
    /// ignored: measured from their time, everyone else would seem silent.
    fn clock(&self, whole: &mut Input) -> anyhow::Result<u64> {
        let ahead_s = self.rules.iter().filter_map(Rule::silent_after_s).min();
        let ahead_s = ahead_s.unwrap_or(AHEAD_S);
        let now_ns = clock_ns();
        let until_ns = now_ns.saturating_add(ahead_s.saturating_mul(1_000_000_000));
        let last = last_packet_until(whole, until_ns)?;
        if last.later == 0 {
            return Ok(last.time_ns.unwrap_or(0));
        }
        say!(Warning AnswerNote;
            "flow records more than {ahead_s} s ahead of this machine's clock: {}; silence is not \
             measured from them: set the clock of their exporter, or of this machine",
            grouped(last.later));
        Ok(last.time_ns.unwrap_or(now_ns))
    }

    /// Adds the enrichment columns for addresses and ports.
    fn enrich(&mut self, input: &mut Input) {
        let Some(enrichment) = &self.enrichment else {
            return;
        };
        let taken = input.enrich(Arc::clone(enrichment));
        if self.told.insert(format!("columns {taken:?}")) {
            say_taken(&taken);
        }
    }

    /// Logs, once per rule, that it was skipped because the records lack a column.
    fn say_passed_over(&mut self, rules: &[(String, String)], columns: &[String]) {
        let is_new = |(rule, _): &&(String, String)| self.told.insert(format!("rule {rule}"));
        let news = rules.iter().filter(is_new);
        let columns = || columns.iter().map(String::as_str);
        let news: Vec<String> = news
            .map(|(rule, column)| match nearest(column, columns()) {
                Some(near) => format!("{rule:?} ({column}; did you mean {near}?)"),
                None => format!("{rule:?} ({column})"),
            })
            .collect();
        if !news.is_empty() {
            say!(Info AnswerNote; "rules are skipped because records lack a column: {}",
                news.join(", "));
        }
    }
}

/// Writes the state to a temporary file and renames it, so that readers never see a partial state.
fn write_state(path: &Path, state: &State) -> anyhow::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    fs::write(&beside, state.to_text()).context("cannot write the state")?;
    fs::rename(&beside, path).context("cannot write the state")
}
