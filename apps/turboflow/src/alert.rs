// SPDX-License-Identifier: Apache-2.0
//! `turboflow alert`: rules over files of flow records, and where alerts go.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use serde_json::Value;
use turboflow_alert::{Alert, Rule, State, alertmanager, find, json, rules, syslog};
use turboflow_query::{Input, QueryError, last_packet_ns};

use crate::exit::{Outcome, print};
use crate::log::say;
use crate::show::{found, say_damages};

const EXAMPLES: &str = "\
Examples:
  What was odd on this day?
    turboflow alert flows/2024/03/01 --rules rules.toml
  Every file of a service, as soon as it is complete
    turboflow run service.toml --log-format json 2>&1 |
      turboflow alert --follow --rules rules.toml --state alerts.json --to syslog+udp://127.0.0.1:514
  To Alertmanager, and to a program of your own
    turboflow alert flows.parquet --rules rules.toml --to alertmanager+http://127.0.0.1:9093 \\
      --to http://127.0.0.1:8080/alerts

contrib/alerts/rules.toml has rules to begin with; docs/alerts.md describes them.

Exit codes: 0 all well, with alerts or without; 1 alerts could not be sent; 2 it could not run.";

/// Find what is odd in flow records, by rules, and send alerts
///
/// Prints a JSON object for each alert. Rules are questions in the language of `turboflow show`
/// with a limit.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct AlertArgs {
    /// Files of flow records, folders or patterns: they are asked as one
    #[arg(
        value_name = "FILE",
        required_unless_present = "follow",
        conflicts_with = "follow"
    )]
    files: Vec<PathBuf>,

    /// The rules, in TOML
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,

    /// What rules about new and silent groups remember; it is made where there is none
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// Where alerts are sent: http://HOST:PORT/PATH, alertmanager+http://HOST:PORT or
    /// syslog+udp://HOST:PORT. Repeat for more
    #[arg(long, value_name = "URL")]
    to: Vec<String>,

    /// Read a log in JSON from standard input, and ask each file that it says is complete
    #[arg(long)]
    follow: bool,
}

/// How long a receiver of alerts may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where alerts go.
enum Receiver {
    Webhook { host: String, path: String },
    Alertmanager { host: String },
    Syslog { host: String },
}

pub(crate) fn run(args: &AlertArgs) -> anyhow::Result<Outcome> {
    let place = args.rules.display();
    let text = fs::read_to_string(&args.rules);
    let text = text.with_context(|| format!("cannot read the rules {place}"))?;
    let rules = rules(&text).map_err(|error| anyhow!("{place}: {error}"))?;
    let receivers = args.to.iter().map(|url| Receiver::parse(url));
    let receivers = receivers.collect::<anyhow::Result<Vec<_>>>()?;
    let mut state = args.read_state()?;
    if !args.follow {
        let files = found(&args.files)?;
        return args.ask(&rules, &receivers, &files, &mut state);
    }
    let mut outcome = Outcome::Well;
    for line in io::stdin().lock().lines() {
        let Some(file) = completed(&line?) else {
            continue;
        };
        match args.ask(&rules, &receivers, &[file], &mut state) {
            Ok(Outcome::Well) => {}
            Ok(lossy) => outcome = lossy,
            Err(error) => {
                // The next file is asked all the same.
                outcome = Outcome::Lossy;
                say!(Error CouldNotRun; "{}", crate::exit::in_words(&error));
            }
        }
    }
    Ok(outcome)
}

/// The file that a line of a log says is complete.
fn completed(line: &str) -> Option<PathBuf> {
    let event: Value = serde_json::from_str(line).ok()?;
    let is_it = event["event"] == "file_completed";
    is_it.then(|| event["file"].as_str().map(PathBuf::from))?
}

impl AlertArgs {
    fn read_state(&self) -> anyhow::Result<State> {
        let Some(path) = self.state.as_deref().filter(|path| path.exists()) else {
            return Ok(State::default());
        };
        let text = fs::read_to_string(path).context("cannot read the state")?;
        let wrong = "it is no state of `turboflow alert`: remove it, or name another file";
        State::parse(&text).map_err(|error| anyhow!("{}: {error}: {wrong}", path.display()))
    }

    /// Asks all rules of files, and sends what they find.
    fn ask(
        &self,
        rules: &[Rule],
        receivers: &[Receiver],
        files: &[PathBuf],
        state: &mut State,
    ) -> anyhow::Result<Outcome> {
        let mut alerts = Vec::new();
        let mut whole = Input::open(files)?;
        let last_ns = last_packet_ns(&mut whole)?.unwrap_or(0);
        let mut outcome = say_damages(&whole);
        // What a rule cannot be asked takes no alert from the others.
        let mut wrong = None;
        for rule in rules {
            let found = match find(rule, Input::open(files)?, last_ns, state) {
                Ok(found) => found,
                Err(error) => {
                    let does_not_fit = matches!(error, QueryError::Question(_));
                    let error = anyhow!(error).context(format!("rule {:?}", rule.name));
                    if does_not_fit {
                        wrong.get_or_insert(error);
                    } else {
                        outcome = Outcome::Lossy;
                        say!(Error CouldNotRun; "{}", crate::exit::in_words(&error));
                    }
                    continue;
                }
            };
            if found.left_out > 0 {
                say!(Warning AnswerNote; "rule {:?}: {} alerts more are left out", rule.name,
                    found.left_out);
            }
            alerts.extend(found.alerts);
        }
        for alert in &alerts {
            print(&format!("{}\n", json(alert)))?;
        }
        for receiver in receivers.iter().filter(|_| !alerts.is_empty()) {
            if let Err(error) = receiver.send(&alerts) {
                outcome = Outcome::Lossy;
                say!(Error OutputFailed, output = receiver.host();
                    "{} alerts were not sent: {}", alerts.len(), crate::exit::in_words(&error));
            }
        }
        if let Some(path) = &self.state {
            write_state(path, state)?;
        }
        wrong.map_or(Ok(outcome), Err)
    }
}

/// Writes the state beside its file first, so that no half of it is ever there.
fn write_state(path: &Path, state: &State) -> anyhow::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    fs::write(&beside, state.to_text()).context("cannot write the state")?;
    fs::rename(&beside, path).context("cannot write the state")
}

impl Receiver {
    fn parse(url: &str) -> anyhow::Result<Self> {
        let forms = "write http://HOST:PORT/PATH, alertmanager+http://HOST:PORT or \
                     syslog+udp://HOST:PORT";
        let (scheme, rest) = url
            .split_once("://")
            .with_context(|| format!("{url:?}: {forms}"))?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let is_plain = !url.contains(|c: char| c.is_whitespace() || c.is_control());
        if !has_port || !is_plain {
            bail!("{url:?}: {forms}");
        }
        let host = host.to_owned();
        match scheme {
            "http" => Ok(Self::Webhook {
                host,
                path: format!("/{path}"),
            }),
            "alertmanager+http" if path.is_empty() => Ok(Self::Alertmanager { host }),
            "syslog+udp" if path.is_empty() => Ok(Self::Syslog { host }),
            _ => bail!("{url:?}: {forms}"),
        }
    }

    fn host(&self) -> &str {
        match self {
            Self::Webhook { host, .. } | Self::Alertmanager { host } | Self::Syslog { host } => {
                host
            }
        }
    }

    fn send(&self, alerts: &[Alert]) -> anyhow::Result<()> {
        match self {
            Self::Webhook { host, path } => {
                let all: Value = alerts.iter().map(json).collect();
                post(host, path, &all.to_string())
            }
            Self::Alertmanager { host } => {
                post(host, "/api/v2/alerts", &alertmanager(alerts).to_string())
            }
            Self::Syslog { host } => {
                let to = host
                    .to_socket_addrs()?
                    .next()
                    .context("there is no such host")?;
                let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any)?;
                for alert in alerts {
                    socket.send_to(syslog(alert).as_bytes(), to)?;
                }
                Ok(())
            }
        }
    }
}

/// Posts a text in JSON (RFC 9112). The answer has to be one of success.
fn post(host: &str, path: &str, body: &str) -> anyhow::Result<()> {
    let to = host
        .to_socket_addrs()?
        .next()
        .context("there is no such host")?;
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    // The status is in the first line: "HTTP/1.1 200 OK".
    let mut line = String::new();
    BufReader::new(stream.take(4096)).read_line(&mut line)?;
    let line = line.trim_end();
    let status = line.split(' ').nth(1).unwrap_or_default();
    match status.len() == 3 && status.starts_with('2') {
        true => Ok(()),
        false => bail!("{host} answered {line:?}"),
    }
}
