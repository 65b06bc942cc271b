// SPDX-License-Identifier: Apache-2.0
//! The machine and the source of a run: `machine.md`, `commit.txt`, and the name of its folder.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use turboflow_formats::time_text;

/// The content of `machine.md`, one line per fact.
pub(crate) fn describe() -> String {
    let memory_kb = first("/proc/meminfo", "MemTotal:")
        .and_then(|text| text.trim_end_matches(" kB").parse::<f64>().ok());
    let memory = memory_kb.map_or_else(
        || "unknown".to_owned(),
        |kb| format!("{:.1} GiB", kb / f64::from(1 << 20)),
    );
    // The version without the suffix that a distribution or a host adds.
    let release = read("/proc/sys/kernel/osrelease");
    let kernel = release.split('-').next().unwrap_or_default().to_owned();
    let facts = [
        ("processor", processor()),
        (
            "logical processors",
            std::thread::available_parallelism()
                .map_or(0, usize::from)
                .to_string(),
        ),
        (
            "last-level cache",
            last_level_cache("/sys/devices/system/cpu/cpu0/cache"),
        ),
        ("memory", memory),
        ("kernel", kernel),
    ];
    let lines = facts.map(|(name, value)| format!("- {name}: {value}\n"));
    lines.concat()
}

/// The notes in the `machine.md` of a run.
pub(crate) fn notes(run: &Path) -> Vec<String> {
    let text = fs::read_to_string(run.join("machine.md")).unwrap_or_default();
    let notes = text
        .lines()
        .filter_map(|line| line.strip_prefix("- note: "));
    notes.map(str::to_owned).collect()
}

/// Load averages of 1, 5 and 15 minutes.
pub(crate) fn load() -> String {
    let text = read("/proc/loadavg");
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// The commit of the tree, marked if the tree has changes, or "unknown".
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    let Some(head) = git(&["rev-parse", "HEAD"]) else {
        return "unknown: this is not a git checkout".to_owned();
    };
    // Documents and runs do not count as changes, because this program writes them.
    let sources = [":(top)", ":(top,exclude)docs", ":(top,exclude)bench/runs"];
    let mut status = vec!["status", "--porcelain", "--untracked-files=no", "--"];
    status.extend(sources);
    match git(&status) {
        Some(changed) if changed.is_empty() => head,
        _ => {
            let mut diff = vec!["diff", "HEAD", "--"];
            diff.extend(sources);
            let mut hasher = DefaultHasher::new();
            git(&diff).hash(&mut hasher);
            let changes = hasher.finish();
            format!("{head} and changes that are in no commit ({changes:016x})")
        }
    }
}

/// The date and the kind of machine. The host name stays out of published runs.
pub(crate) fn folder_name() -> String {
    let words = ["(R)", "(TM)", "CPU"]
        .iter()
        .fold(processor(), |name, word| name.replace(word, " "));
    let kind: Vec<String> = words
        .split('@')
        .next()
        .unwrap_or_default()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    format!("{}-{}-evaluation", today(), kind.join("-"))
}

fn processor() -> String {
    first("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| unknown(), |text| text.trim().to_owned())
}

/// The size of the cache with the highest index in a sysfs folder. On some processors,
/// `/proc/cpuinfo` gives the size of another cache.
fn last_level_cache(folder: &str) -> String {
    let size = |index| fs::read_to_string(format!("{folder}/index{index}/size"));
    let mut sizes = (0..8).rev().filter_map(|index| size(index).ok());
    sizes
        .next()
        .map_or_else(unknown, |size| size.trim().to_owned())
}

/// The text after the colon, in the first line that begins with the name.
fn first(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[expect(clippy::disallowed_methods, reason = "a run has a date")]
fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut date = time_text(now.map_or(0, |since| since.as_secs() * 1_000_000_000));
    date.truncate("2024-03-01".len());
    date
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_level_cache_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        assert_eq!(last_level_cache(path), unknown());
        for (index, size) in [(0, "48K\n"), (2, "1024K\n"), (3, "32768K\n")] {
            let cache = folder.path().join(format!("index{index}"));
            fs::create_dir(&cache).unwrap();
            fs::write(cache.join("size"), size).unwrap();
        }
        assert_eq!(last_level_cache(path), "32768K");
    }

    #[test]
    fn a_machine_has_a_name_for_paths() {
        let name = folder_name();
        assert!(name.ends_with("-evaluation"));
        assert!(
            name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
            "{name}"
        );
    }
}
