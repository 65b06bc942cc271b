// SPDX-License-Identifier: Apache-2.0
//! Tips for options and commands that do not exist here, but that users know from other commands or
//! tools.

use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use turboflow_formats::Format;

/// Commands of `turboflow-lab` that users may look for here.
const LABORATORY: [&str; 2] = ["bench", "evaluation"];

/// An option of other tools, and its replacement here.
struct Known {
    /// What users write.
    typed: &'static [&'static str],
    /// The equivalent option of the command; empty if no option is needed.
    option: &'static str,
    /// The commands to which the row applies; empty for all that have `option`.
    commands: &'static [&'static str],
    tip: &'static str,
}

/// The first row that applies to the command is used.
const KNOWN: [Known; 13] = [
    Known {
        typed: &["-o", "--output", "--out", "--outfile"],
        option: "write",
        commands: &[],
        tip: "-w FILE writes to a file",
    },
    Known {
        typed: &["-o", "-w", "--write", "--output", "--out", "--outfile"],
        option: "",
        commands: &["show", "sql", "plan", "definition"],
        tip: "the answer goes to standard output: > FILE writes it to a file",
    },
    Known {
        typed: &["--limit", "-n", "--head", "--rows", "--count"],
        option: "top",
        commands: &[],
        tip: "--top N limits the rows",
    },
    Known {
        typed: &["--limit", "-n", "--head", "--top", "--count"],
        option: "rows",
        commands: &[],
        tip: "--rows N limits the rows",
    },
    Known {
        typed: &["--limit", "-n", "--count", "--top"],
        option: "packets",
        commands: &["record"],
        tip: "-c N ends a run after N packets; `turboflow show FILE --top N` shows the N largest \
              flow records",
    },
    Known {
        typed: &["--sample", "--sampling", "--sampling-rate", "--sample-rate"],
        option: "",
        commands: &["record", "top"],
        tip: "every packet is metered, none is sampled; to meter only some packets, add a filter \
              at the end, such as 'tcp port 443'",
    },
    Known {
        typed: &["--sort", "--sort-by", "--order-by", "--order", "-O"],
        option: "by",
        commands: &[],
        tip: "--by FIELD sorts by a field, --ascending reverses the order",
    },
    Known {
        typed: &["--by", "--sort-by", "--order-by", "--order"],
        option: "sort",
        commands: &[],
        tip: "--sort COLUMN sorts by a column",
    },
    Known {
        typed: &["--where", "--filter", "-f", "--bpf"],
        option: "read",
        commands: &["record", "plan"],
        tip: "a packet filter goes at the end, without an option: \
              turboflow record -r FILE 'tcp port 443'; to filter flow records, use \
              `turboflow show FILE --where 'tcp port 443'`",
    },
    Known {
        typed: &["--filter", "-f", "--query"],
        option: "where",
        commands: &[],
        tip: "--where 'tcp port 443' selects records",
    },
    Known {
        typed: &["-r", "--read", "--input", "--file"],
        option: "",
        commands: &["show"],
        tip: "files go without an option: turboflow show FILE; to read captures, use \
              `turboflow record -r`",
    },
    Known {
        typed: &["--json", "--csv", "--jsonl", "-F"],
        option: "format",
        commands: &[],
        tip: "--format json or --format csv selects the output format",
    },
    Known {
        typed: &["--json", "--csv"],
        option: "batch",
        commands: &[],
        tip: "--batch N prints N screens as text",
    },
];

/// Adds what to write instead, and removes misleading suggestions.
pub(super) fn with_tip(mut error: Error, program: &Command, typed: &[String]) -> Error {
    let text_of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let unknown = text_of(ContextKind::InvalidSubcommand);
    let option = text_of(ContextKind::InvalidArg);
    let prior = text_of(ContextKind::PriorArg);
    let command = typed.iter().find_map(|word| program.find_subcommand(word));
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let tip = unknown.and_then(|typed| of_command(&typed));
            if tip.is_some() {
                error.remove(ContextKind::SuggestedSubcommand);
            }
            tip
        }
        ErrorKind::UnknownArgument => {
            // Users rarely mean a value with a hyphen, and a similar name is often something else.
            error.remove(ContextKind::Suggested);
            option
                .zip(command)
                .and_then(|(option, command)| of_option(&option, command, program))
        }
        ErrorKind::ArgumentConflict => match (option, prior, command) {
            (Some(option), Some(prior), Some(command)) => of_conflict(&option, &prior, command),
            _ => None,
        },
        _ => None,
    };
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedArg);
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

/// The tip for an option of interfaces beside captures, in commands that meter either.
fn of_conflict(option: &str, prior: &str, command: &Command) -> Option<String> {
    if !["record", "top"].contains(&command.get_name()) {
        return None;
    }
    let is_read = |name: &str| name.starts_with("--read ");
    match (option, prior) {
        (read, other) | (other, read) if is_read(read) && !other.starts_with("--interface ") => {
            Some(format!(
                "leave out {other}: it is for interfaces (-i), not for captures (-r)"
            ))
        }
        _ => None,
    }
}

/// What to type instead of a word that is not a command.
fn of_command(typed: &str) -> Option<String> {
    let path = Path::new(typed);
    if LABORATORY.contains(&typed) {
        Some(format!(
            "this command is in the program turboflow-lab: turboflow-lab {typed} (build it with \
             cargo build --release --package turboflow-lab)"
        ))
    } else if path.is_dir() {
        Some(format!(
            "to meter the captures in it: turboflow record -r {typed}"
        ))
    } else if path.exists() {
        let is_flows = Format::from_path(path).is_ok();
        let (what, command) = match is_flows {
            true => ("to look at its flow records", "show"),
            false => ("to meter this capture", "record -r"),
        };
        Some(format!("{what}: turboflow {command} {typed}"))
    } else if Path::new("/sys/class/net").join(typed).exists() {
        Some(format!(
            "to meter this interface: turboflow record -i {typed}"
        ))
    } else {
        None
    }
}

/// The tip for an option that the command does not have.
fn of_option(option: &str, command: &Command, program: &Command) -> Option<String> {
    let name = command.get_name();
    let fits = |known: &&Known| {
        let of_this = known.commands.is_empty() || known.commands.contains(&name);
        let has = known.option.is_empty() || has_option(command, &format!("--{}", known.option));
        known.typed.contains(&option) && of_this && has
    };
    if let Some(known) = KNOWN.iter().find(fits) {
        return Some(known.tip.to_owned());
    }
    if !option.starts_with("--") {
        return None;
    }
    let others = program
        .get_subcommands()
        .filter(|other| has_option(other, option));
    let others: Vec<_> = others
        .map(|other| format!("`turboflow {}`", other.get_name()))
        .collect();
    (!others.is_empty()).then(|| format!("{option} is an option of {}", others.join(", ")))
}

fn has_option(command: &Command, option: &str) -> bool {
    let mut arguments = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set());
    arguments.any(|argument| {
        let long = argument
            .get_long()
            .is_some_and(|long| option.strip_prefix("--") == Some(long));
        let short = argument.get_short();
        long || short.is_some_and(|short| option == format!("-{short}"))
    })
}
