// SPDX-License-Identifier: Apache-2.0
//! `turboflow applications`: the names that inspection reports and that rules may use.

use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use turboflow_formats::table::{Align, Table};
use turboflow_formats::{csv_field, json_string};
use turboflow_record::{ApplicationNames, NameIndex};

use crate::applications;
use crate::exit::{Outcome, print, terminal_width};
use crate::show::AnswerFormat;

/// Follows the options in `-h`, which is one screen.
const SHORT: &str = "--help has examples and exit codes.";

const EXAMPLES: &str = "\
Examples:
  What is an application called?
    turboflow applications | grep -i netflix
  All applications of a category, for programs
    turboflow applications --format csv | grep ^application, | grep ,VPN$
  Rules that use these names
    turboflow bridge --check --rules rules.toml

Exit codes: 0 all well; 2 the program has no inspection.";

/// List the applications, categories and risks that inspection (--dpi) distinguishes.
///
/// The names and numbers are those of this system's library nDPI. Flow records contain them, and
/// rules of `turboflow bridge` may use them.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct ApplicationsArgs {
    /// How to print the lists
    #[arg(long, value_enum, default_value_t = AnswerFormat::Table)]
    format: AnswerFormat,
}

/// A name with its kind: application, category or risk.
struct Named {
    kind: &'static str,
    number: u32,
    name: String,
    /// The category of an application; `None` for other kinds.
    category: Option<String>,
}

pub(crate) fn run(args: &ApplicationsArgs) -> anyhow::Result<Outcome> {
    let names = applications::names().context("cannot list applications")?;
    let all = all(&names);
    let text = match args.format {
        AnswerFormat::Table => tables(&names.library, &all, terminal_width()),
        AnswerFormat::Csv => csv(&all),
        AnswerFormat::Json => json(&all),
    };
    print(&text)?;
    Ok(Outcome::Well)
}

fn all(names: &Arc<ApplicationNames>) -> Vec<Named> {
    let index = NameIndex::new(Arc::clone(names));
    let applications = names.applications.iter().map(|(number, name, _)| Named {
        kind: "application",
        number: *number,
        name: name.clone(),
        category: Some(index.category_of(*number).into_owned()),
    });
    let others = [("category", &names.categories), ("risk", &names.risks)];
    let others = others.into_iter().flat_map(|(kind, list)| {
        list.iter().map(move |(number, name)| Named {
            kind,
            number: (*number).into(),
            name: name.clone(),
            category: None,
        })
    });
    // Some versions of the library have numbers without a name, which no rule can refer to.
    applications
        .chain(others)
        .filter(|it| !it.name.is_empty())
        .collect()
}

/// One titled table per kind.
fn tables(library: &str, all: &[Named], width: Option<usize>) -> String {
    let titles = [
        ("application", "Applications"),
        ("category", "Categories"),
        ("risk", "Risks"),
    ];
    let part = |(kind, title): (&str, &str)| {
        let mut columns = vec![("number", Align::Right), ("name", Align::Left)];
        if kind == "application" {
            columns.push(("category", Align::Left));
        }
        let mut table = Table::new(columns);
        for it in all.iter().filter(|it| it.kind == kind) {
            let mut row = vec![it.number.to_string(), it.name.clone()];
            row.extend(it.category.clone());
            table.push(row);
        }
        format!(
            "{title} of {library} ({kind} = [...] in rules):\n{}",
            table.render(width)
        )
    };
    titles.map(part).join("\n")
}

fn csv(all: &[Named]) -> String {
    let mut text = "kind,number,name,category\n".to_owned();
    for it in all {
        let category = it.category.as_deref().unwrap_or_default();
        let (name, category) = (csv_field(&it.name), csv_field(category));
        text += &format!("{},{},{name},{category}\n", it.kind, it.number);
    }
    text
}

/// One object per line.
fn json(all: &[Named]) -> String {
    let line = |it: &Named| {
        let category = it
            .category
            .as_deref()
            .map_or("null".to_owned(), json_string);
        format!(
            "{{\"kind\":\"{}\",\"number\":{},\"name\":{},\"category\":{category}}}\n",
            it.kind,
            it.number,
            json_string(&it.name)
        )
    };
    all.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Arc<ApplicationNames> {
        Arc::new(ApplicationNames {
            library: "nDPI 9".to_owned(),
            applications: vec![(91, "TLS".to_owned(), 5), (133, "Net,Flix".to_owned(), 9)],
            categories: vec![(5, "Web".to_owned()), (6, String::new())],
            confidences: Vec::new(),
            risks: vec![(3, "Weak \"TLS\"".to_owned())],
        })
    }

    #[test]
    fn every_format_has_every_name() {
        let all = all(&names());
        assert_eq!(
            csv(&all),
            "kind,number,name,category\napplication,91,TLS,Web\napplication,133,\"Net,Flix\",9\n\
             category,5,Web,\nrisk,3,\"Weak \"\"TLS\"\"\",\n"
        );
        let lines = json(&all);
        let lines: Vec<serde_json::Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[1]["name"], "Net,Flix");
        assert_eq!(lines[3]["name"], "Weak \"TLS\"");
        assert_eq!(lines[3]["category"], serde_json::Value::Null);
        let text = tables("nDPI 9", &all, None);
        for words in [
            "Applications of nDPI 9 (application = [...] in rules):",
            "    91  TLS",
        ] {
            assert!(text.contains(words), "{words:?} is missing in {text}");
        }
        assert!(
            text.contains("Risks of nDPI 9") && text.contains("     3  Weak"),
            "{text}"
        );
    }
}
