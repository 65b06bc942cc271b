// SPDX-License-Identifier: Apache-2.0
//! `turboflow run`: `turboflow record -i` as a service, configured by a file.

mod example;
mod file;
mod reread;

use std::path::PathBuf;

use clap::Args;

use crate::exit::{Outcome, print};
use crate::keys::speak_of_keys;
use crate::log::say;
use crate::record;
use reread::Rereading;

/// Follows the options in `-h`, which is one screen.
const SHORT: &str = "--help has examples, signals and exit codes.";

const EXAMPLES: &str = "\
Examples:
  A configuration to start from: every key with its default and what it means
    turboflow run --print-config > turboflow.toml
  Check it: opens and writes nothing; interfaces and folders may still be missing
    turboflow run --config turboflow.toml --check
  Meter until SIGTERM
    turboflow run --config /etc/turboflow.toml

Signals:
  SIGTERM, SIGINT  writes everything and exits with 0; a second one aborts
  SIGHUP           completes files whose names have a time, and starts new ones; rereads the
                   configuration: changes of outputs apply at once, others at the next start

Exit codes: those of `turboflow record`. An unknown key or a wrong value gives 2, with the line
and what to write instead.";

/// Meter interfaces as a service, configured by a file.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// The configuration, as TOML
    #[arg(short, long, value_name = "FILE.toml")]
    #[arg(required_unless_present = "print_config")]
    config: Option<PathBuf>,

    /// Check the configuration, list missing interfaces and folders, and exit
    #[arg(long, requires = "config")]
    check: bool,

    /// Print a configuration with every key and its default
    #[arg(long, conflicts_with = "config")]
    print_config: bool,
}

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<Outcome> {
    let Some(path) = &args.config else {
        print(&example::text())?;
        return Ok(Outcome::Well);
    };
    speak_of_keys();
    let (run, files) = reread::read(path, None)?;
    if args.check {
        let name = path.display();
        match record::absent(&run) {
            absent if absent.is_empty() => say!(Info ConfigurationChecked; "{name} is valid"),
            absent => {
                let listed = absent.join(", ");
                say!(Warning ConfigurationChecked, absent = absent;
                    "{name} is valid, but these do not exist yet: {listed}");
            }
        }
        return Ok(Outcome::Well);
    }
    let mut rereading = Rereading::new(path, run.clone(), files);
    record::serve(&run, Box::new(move |apply| rereading.reread(apply)))
}
