// SPDX-License-Identifier: Apache-2.0
//! The report: a Markdown page with its plots in files beside it.

pub(crate) mod axis;
pub(crate) mod chart;
pub(crate) mod panels;
mod svg;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::facts::Raw;
use crate::parts::{PARTS, Scale};

/// The report of one part.
#[derive(Default)]
pub(crate) struct Section {
    text: String,
    /// File names without extension, and the drawings in them.
    plots: Vec<(String, String)>,
}

impl Section {
    /// Adds a paragraph, one sentence per line.
    pub(crate) fn say(&mut self, text: impl AsRef<str>) {
        let text = text.as_ref().replace(". ", ".\n");
        writeln!(self.text, "{text}\n").expect("a string takes any text");
    }

    /// Adds a table. `names` is its header.
    pub(crate) fn table(&mut self, names: &[&str], rows: &[Vec<String>]) {
        let mut line = |cells: &[&str]| {
            writeln!(self.text, "| {} |", cells.join(" | ")).expect("a string takes any text");
        };
        line(names);
        line(&vec!["---"; names.len()]);
        for row in rows {
            line(&row.iter().map(String::as_str).collect::<Vec<_>>());
        }
        self.text.push('\n');
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Adds a drawing, which is stored in a file of that name.
    pub(crate) fn plot(&mut self, name: &str, shows: &str, svg: String) {
        self.say(format!("![{shows}]({name}.svg)"));
        self.plots.push((name.to_owned(), svg));
    }
}

/// The source of the report's numbers.
pub(crate) struct Origin<'a> {
    /// The run's name.
    pub(crate) run: &'a str,
    /// Relative path from the report to the folder of the run: empty, or ending in a slash.
    pub(crate) link: &'a str,
    /// Notes on the run, shown at the top of the report.
    pub(crate) notes: &'a [String],
    /// Whether it is a quick run. Parts that are computed for its report are then quick, too.
    pub(crate) quick: bool,
    /// The measurements of the run.
    pub(crate) raw: &'a Raw,
}

impl Origin<'_> {
    /// Links to the run and the files that describe it.
    fn links(&self) -> String {
        let Self { run, link, .. } = self;
        format!(
            "[{run}]({link}raw.jsonl): [machine]({link}machine.md), [commit]({link}commit.txt), \
             [command]({link}command.txt)"
        )
    }
}

/// Writes `report.md` and its plots. A part that the first run lacks is taken from the next run
/// that has it: no part mixes numbers of two runs.
pub(crate) fn write(folder: &Path, origins: &[Origin<'_>]) -> anyhow::Result<()> {
    let first = &origins[0];
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let mut page = head(first, origins.len() > 1);
    let mut left_out = Vec::new();
    for part in &PARTS {
        let mut section = Section::default();
        let mut measured = origins.iter().enumerate();
        match measured.find(|(_, its)| its.raw.is_complete(part.name)) {
            Some((index, origin)) => {
                if index > 0 {
                    section.say(format!("From another run, {}.", origin.links()));
                    origin
                        .notes
                        .iter()
                        .for_each(|note| section.say(format!("Note: {note}.")));
                }
                (part.report)(origin.raw, &mut section);
            }
            None if part.is_computed => {
                let with_it = part.computed(first.raw, &Scale::of_computation(first.quick))?;
                (part.report)(&with_it, &mut section);
            }
            None => {
                left_out.push(part.title);
                continue;
            }
        }
        write!(page, "## {}\n\n{}", part.title, section.text).expect("a string takes any text");
        for (name, svg) in &section.plots {
            let path = folder.join(format!("{name}.svg"));
            fs::write(&path, svg).with_context(|| format!("writing {}", path.display()))?;
        }
    }
    if !left_out.is_empty() {
        page += "## Not measured in this run\n\n";
        for title in left_out {
            writeln!(page, "- {title}").expect("a string takes any text");
        }
    }
    let path = folder.join("report.md");
    fs::write(&path, page.trim_end().to_owned() + "\n")
        .with_context(|| format!("writing {}", path.display()))
}

/// The text above the parts.
fn head(origin: &Origin<'_>, has_others: bool) -> String {
    let others = match has_others {
        true => {
            "Parts that it lacks are from other runs, which they name: \
             do not compare numbers of two runs.\n"
        }
        false => "",
    };
    let mut page = format!(
        "# The papers' evaluation, run again\n\n\
         Written by `make evaluation` from the run {}.\n\
         {others}\
         Do not edit this page: measure again, or draw it again with `turboflow-lab evaluation report`.\n\
         In the plots, solid lines, dots and bars are measured here; dashed lines, rings and \
         outlines are the paper's numbers.\n\n",
        origin.links()
    );
    for note in origin.notes {
        writeln!(page, "Note: {note}.\n").expect("a string takes any text");
    }
    page
}

/// A number with `digits` decimals; `-` for NaN.
pub(crate) fn number(value: f64, digits: usize) -> String {
    if value.is_nan() {
        "-".to_owned()
    } else {
        format!("{value:.digits$}")
    }
}

/// A share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    number(share * 100.0, 2) + " %"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_paragraphs_tables_and_plots() {
        let mut section = Section::default();
        section.say("Words. More words.");
        section.table(&["a", "b"], &[vec!["1".to_owned(), number(f64::NAN, 1)]]);
        section.plot("figure", "what it shows", "<svg/>".to_owned());
        let expected = "Words.\nMore words.\n\n| a | b |\n| --- | --- |\n| 1 | - |\n\n![what it shows](figure.svg)\n\n";
        assert_eq!(section.text, expected);
        assert_eq!(section.plots, [("figure".to_owned(), "<svg/>".to_owned())]);
        assert_eq!(percent(0.1234), "12.34 %");
    }
}
