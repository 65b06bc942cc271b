// SPDX-License-Identifier: Apache-2.0
//! `turboflow bridge`: a bridge that polices by application. So far it checks rules.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use turboflow_bridge::Rules;
use turboflow_formats::table::{Align, Table};

use crate::applications;
use crate::exit::{Outcome, print};
use crate::log::say;
use crate::units::counted;

/// Behind `-h`, which is one screen.
const SHORT: &str = "--help has an example of rules and exit codes.";

const EXAMPLES: &str = "\
Examples:
  Are the rules right, and what do they mean?
    turboflow bridge --check --rules rules.toml
  Which names can rules have?
    turboflow applications

Rules (docs/bridge.md has all keys): the first that matches decides.
  default = \"pass\"               # a flow that no rule matches
  [[rule]]
  name = \"no-netflix\"
  application = [\"NetFlix\"]      # or category, server_name, protocol, port, src, dst, risk
  except = { src = [\"10.0.5.0/24\"] }
  action = \"drop\"

Exit codes: 0 all well; 2 the rules are wrong or cannot be read.";

/// Check the rules of a bridge that passes or drops flows by their application.
///
/// The bridge itself is not part of this program yet: rules are checked, and each is printed as it
/// is understood.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct BridgeArgs {
    /// Check the rules, and print what each of them does
    #[arg(long, required = true)]
    check: bool,

    /// The file of rules (TOML)
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
}

pub(crate) fn run(args: &BridgeArgs) -> anyhow::Result<Outcome> {
    let rules = read(&args.rules)?;
    let name = args.rules.display();
    for warning in rules.warnings() {
        say!(Warning RulesDoubtful; "{name}, {warning}");
    }
    print(&in_words(&rules, &name.to_string()))?;
    Ok(Outcome::Well)
}

fn read(path: &Path) -> anyhow::Result<Rules> {
    let name = path.display();
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read the rules {name}"))?;
    // Rules of addresses and ports need no names.
    let names = match cfg!(feature = "dpi") {
        true => Some(applications::names().context("cannot look up names of applications")?),
        false => None,
    };
    Rules::parse(&text, names.as_deref(), None).map_err(|error| anyhow!("{name}, {error}"))
}

/// The rules as they are understood.
fn in_words(rules: &Rules, name: &str) -> String {
    let count = counted(rules.rules().len() as u64, "rule");
    let mut text = format!("{name} is valid: {count}\n");
    if !rules.rules().is_empty() {
        let columns = [
            ("number", Align::Right),
            ("rule", Align::Left),
            ("what it does", Align::Left),
        ];
        let mut table = Table::new(columns);
        for rule in rules.rules() {
            let number = rule.id().number().to_string();
            table.push(vec![number, rule.name().to_owned(), rule.to_string()]);
        }
        text += &format!("\n{}", table.render(None));
    }
    let mut table = Table::new([("setting", Align::Left), ("value", Align::Left)]);
    for (about, is) in rules.settings() {
        table.push(vec![about.to_owned(), is]);
    }
    text + &format!("\n{}", table.render(None))
}
