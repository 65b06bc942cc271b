// SPDX-License-Identifier: Apache-2.0
//! Runs the evaluation: each part in its own process, then the report.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use turboflow_bench::Timer;

use crate::facts::{Fact, Raw};
use crate::parts::{PARTS, Part, Scale, part};
use crate::redis::Server;
use crate::report::Origin;
use crate::{machine, report};

/// What to measure, and where to store it.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// How much is measured. If no Redis server is named but Redis is installed, a server is
    /// started for the run.
    pub scale: Scale,
    /// Folder of the run; `bench/runs/DATE-MACHINE-evaluation` by default.
    pub out: Option<PathBuf>,
    /// Folder of the report; that of the run by default.
    pub report: Option<PathBuf>,
    /// An additional sentence for `machine.md`.
    pub note: Option<String>,
    /// Names of the parts; empty means all.
    pub parts: Vec<String>,
}

/// Returns a command that measures a part, by calling [`measure`](crate::measure) and printing its
/// output.
type MeasureCommand<'a> = &'a dyn Fn(&str, &Scale) -> anyhow::Result<Command>;

/// Measures all parts that the run lacks, each in the process that `measuring` describes, and
/// writes the report. Returns the names of the parts that failed.
///
/// # Errors
/// If a part is unknown, the run has another commit or scale, or the folder of the run or of the
/// report cannot be written.
pub fn run(
    options: &RunOptions,
    measuring: MeasureCommand<'_>,
) -> anyhow::Result<Vec<&'static str>> {
    let chosen = chosen(&options.parts)?;
    let out = options
        .out
        .clone()
        .unwrap_or_else(|| Path::new("bench/runs").join(machine::folder_name()));
    fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
    let load_before = machine::load();
    let mut raw = Raw::open(&out)?;
    let todo: Vec<&Part> = chosen
        .into_iter()
        .filter(|part| !raw.is_complete(part.name))
        .collect();
    if todo.is_empty() {
        check_scale(&out, options.scale.quick)?;
        eprintln!(
            "evaluation: all parts are in {}: remove it to measure again",
            out.display()
        );
    } else {
        claim(&out, options.scale.quick)?;
    }
    let mut failed = Vec::new();
    let mut scale = options.scale.clone();
    let server = match scale.redis {
        None if !todo.is_empty() => Server::start(),
        _ => None,
    };
    if let Some(server) = &server {
        scale.redis = Some(server.address.clone());
    }
    for (index, part) in todo.iter().enumerate() {
        eprintln!("evaluation: [{}/{}] {}", index + 1, todo.len(), part.title);
        let measured = measuring(part.name, &scale).and_then(|by| measure(part, by, &mut raw));
        if let Err(error) = measured {
            eprintln!("evaluation: FAILED: {}: {error:#}", part.name);
            failed.push(part.name);
        }
    }
    drop(server);
    if !todo.is_empty() {
        write_circumstances(&out, options, &load_before)?;
    }
    write_report(&[(&*out, raw)], options.report.as_deref())?;
    if !failed.is_empty() {
        eprintln!(
            "evaluation: failed: {}; run it again to measure what is missing",
            failed.join(", ")
        );
    }
    Ok(failed)
}

/// Writes the report of an earlier run into `folder`, or into the folder of the run. Parts that the
/// run lacks are taken from the first of `others` that has them.
///
/// # Errors
/// If one of the folders is not a run or adds nothing, if quick runs would be mixed with others, or
/// if the report cannot be written.
pub fn redraw(out: &Path, others: &[PathBuf], folder: Option<&Path>) -> anyhow::Result<()> {
    let mut runs = vec![(out, opened(out)?)];
    let quick = is_quick(out);
    for other in others {
        let raw = opened(other)?;
        check_scale(other, quick)?;
        let is_new = |part: &Part| {
            let is_there = runs.iter().any(|(_, run)| run.is_complete(part.name));
            raw.is_complete(part.name) && !is_there
        };
        ensure!(
            PARTS.iter().any(is_new),
            "{} has no part that the runs before it lack: leave it out",
            other.display()
        );
        runs.push((other, raw));
    }
    write_report(&runs, folder)
}

/// Reads the measurements of a run.
fn opened(run: &Path) -> anyhow::Result<Raw> {
    ensure!(
        run.join("raw.jsonl").exists(),
        "{} is not a run: it has no raw.jsonl",
        run.display()
    );
    Raw::open(run)
}

/// Writes the report of the first run, with parts of the others; by default into the run's own
/// folder.
fn write_report(runs: &[(&Path, Raw)], folder: Option<&Path>) -> anyhow::Result<()> {
    let folder = folder.unwrap_or(runs[0].0);
    let told = |(out, _): &(&Path, Raw)| {
        let name = out.file_name().unwrap_or_default().to_string_lossy();
        (name.into_owned(), link(folder, out), machine::notes(out))
    };
    let told: Vec<_> = runs.iter().map(told).collect();
    let origins = runs.iter().zip(&told);
    let origins = origins.map(|((out, raw), (run, link, notes))| Origin {
        run,
        link,
        notes,
        quick: is_quick(out),
        raw,
    });
    report::write(folder, &origins.collect::<Vec<_>>())?;
    let page = folder.join("report.md");
    eprintln!("evaluation: the report is {}", page.display());
    Ok(())
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Part>> {
    if names.is_empty() {
        const ALL: &[Part] = &PARTS;
        return Ok(ALL.iter().collect());
    }
    names.iter().map(|name| part(name)).collect()
}

/// The suffix that quick runs add to their commit.
const QUICK: &str = ", quick";

/// The commit of a run, and whether it is a quick one; empty if it has none yet.
fn commit_of(out: &Path) -> String {
    let commit = fs::read_to_string(out.join("commit.txt")).unwrap_or_default();
    commit.trim().to_owned()
}

fn is_quick(out: &Path) -> bool {
    commit_of(out).ends_with(QUICK)
}

/// Quick and full measurements must not mix in one run, nor in one report.
fn check_scale(out: &Path, quick: bool) -> anyhow::Result<()> {
    let before = commit_of(out);
    ensure!(
        before.is_empty() || before.ends_with(QUICK) == quick,
        "{} is {}: remove it, or name another folder",
        out.display(),
        if quick {
            "no quick run"
        } else {
            "of a quick run"
        },
    );
    Ok(())
}

/// Records the commit of the run, and fails if the run has another one: all parts of a run must be
/// measured at one commit.
fn claim(out: &Path, quick: bool) -> anyhow::Result<()> {
    let (path, mut commit) = (out.join("commit.txt"), machine::commit());
    if quick {
        commit.push_str(QUICK);
    }
    if let Ok(before) = fs::read_to_string(&path) {
        ensure!(
            before.trim() == commit,
            "{} was measured at {}, this is {commit}: remove it, or name another folder",
            out.display(),
            before.trim()
        );
    }
    fs::write(&path, commit + "\n").with_context(|| format!("writing {}", path.display()))
}

/// Runs the process that measures a part, and stores its output.
fn measure(part: &Part, mut command: Command, raw: &mut Raw) -> anyhow::Result<()> {
    command.stdout(Stdio::piped());
    let mut timer = Timer::default();
    timer.time(|| -> anyhow::Result<()> {
        let mut child = command.spawn().context("starting its process")?;
        let stdout = child.stdout.take().context("its output is a pipe")?;
        for line in BufReader::new(stdout).lines() {
            let line = line.context("reading what it measured")?;
            let fact = serde_json::from_str(&line)
                .with_context(|| format!("it printed a line that is not a fact: {line}"))?;
            raw.add(fact)?;
        }
        let status = child.wait().context("waiting for its process")?;
        ensure!(
            status.success(),
            "its process ended with {status}, see above"
        );
        Ok(())
    })?;
    let took_s = timer.total().as_secs_f64();
    eprintln!("evaluation: {} took {took_s:.1} s", part.name);
    raw.add(Fact {
        complete_after_s: Some(took_s),
        ..Fact::new(part.name)
    })
}

fn write_circumstances(out: &Path, options: &RunOptions, load_before: &str) -> anyhow::Result<()> {
    let mut text = machine::describe();
    text += &format!("- load average before: {load_before}\n");
    text += &format!("- load average after: {}\n", machine::load());
    let quick = options.scale.quick;
    if quick {
        text += "- note: a quick run, to see that everything works; its speeds are not results\n";
    }
    if let Some(note) = &options.note {
        text += &format!("- note: {note}\n");
    }
    let command = command_line(quick, &options.parts);
    for (name, text) in [("machine.md", &text), ("command.txt", &command)] {
        let path = out.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// The command that repeats the measurement.
fn command_line(quick: bool, parts: &[String]) -> String {
    let target = if quick {
        "evaluation-quick"
    } else {
        "evaluation"
    };
    if parts.is_empty() {
        format!("make {target}\n")
    } else {
        format!("make {target} ARGS=\"--parts {}\"\n", parts.join(","))
    }
}

/// The relative path between two folders below the current one: empty, or ending in a slash.
fn link(from: &Path, to: &Path) -> String {
    let parts = |path: &Path| -> Vec<PathBuf> {
        path.components()
            .filter(|part| *part != Component::CurDir)
            .map(|part| PathBuf::from(part.as_os_str()))
            .collect()
    };
    let (from, to) = (parts(from), parts(to));
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut link = "../".repeat(from.len() - shared);
    for part in &to[shared..] {
        link += &format!("{}/", part.display());
    }
    link
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_links_to_its_run() {
        let link = |from: &str, to: &str| link(Path::new(from), Path::new(to));
        assert_eq!(
            link("docs/evaluation", "bench/runs/x"),
            "../../bench/runs/x/"
        );
        assert_eq!(link("target/x", "./target/x"), "");
        assert_eq!(link("target", "target/x"), "x/");
    }

    #[test]
    fn a_run_of_another_commit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("commit.txt"), "0123\n").unwrap();
        let error = claim(folder.path(), false).unwrap_err().to_string();
        assert!(error.contains("was measured at 0123"), "{error}");
        // Quick and full parts must not be mixed.
        let folder = tempfile::tempdir().unwrap();
        claim(folder.path(), true).unwrap();
        claim(folder.path(), true).unwrap();
        let error = claim(folder.path(), false).unwrap_err().to_string();
        assert!(error.contains(", quick"), "{error}");
        check_scale(folder.path(), true).unwrap();
        let error = check_scale(folder.path(), false).unwrap_err().to_string();
        assert!(error.contains("is of a quick run"), "{error}");
    }
}
