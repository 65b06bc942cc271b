// SPDX-License-Identifier: Apache-2.0
//! Compares limits on memory with what the tables may need.

use std::fs;
use std::path::Path;

use anyhow::bail;
use turboflow_aggregate::{has_room, share_heap};
use turboflow_run::{PipelineConfig, RunSizes};

use crate::keys::Key;
use crate::log::say;
use crate::units::{counted, grouped};

/// Address space in bytes that the process may need in addition to its tables, including the
/// buffers of Parquet. Each thread needs more. Measured with two million flows.
const LEAST_BYTES: u64 = 288 << 20;
const LEAST_BYTES_A_THREAD: u64 = 16 << 20;

/// Memory in bytes that a run needs at its start in addition to its microflow tables: stacks,
/// buffers, and the first part of the flow caches. Each thread needs more. These are upper bounds
/// with some reserve, because a run with too little memory might panic or abort.
const START_BYTES: u64 = 32 << 20;
const START_BYTES_A_THREAD: u64 = 8 << 20;

/// A limit on the memory of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Limit {
    bytes: u64,
    /// The name of the limit.
    by: &'static str,
    /// What happens at the limit.
    then: &'static str,
}

/// Prepares for a limited address space. Must be called before there are other threads.
pub(super) fn prepare() {
    if address_space(Path::new("/")).is_some() {
        share_heap();
    }
}

/// Refuses to start if the system does not grant the memory that a run needs at its start. Later,
/// the run copes with less (end reason 5).
pub(super) fn check_start(config: &PipelineConfig, sizes: &RunSizes) -> anyhow::Result<()> {
    let threads = (config.readers * config.threads) as u64;
    let more = START_BYTES + START_BYTES_A_THREAD * threads;
    let needed = sizes.microflow_table_bytes as u64 + more;
    if has_room(usize::try_from(needed).unwrap_or(usize::MAX)) {
        return Ok(());
    }
    let root = Path::new("/");
    let limits = [address_space(root), own_memory(root)];
    let limit = limits.into_iter().flatten().min_by_key(|it| it.bytes);
    let mib = |bytes: u64| grouped(bytes.div_ceil(1 << 20));
    let (microflow_mib, needed) = (mib(sizes.microflow_table_bytes as u64), mib(needed));
    let (why, mend) = match limit {
        Some(limit) => (
            format!("{} allows {} MiB in all", limit.by, mib(limit.bytes)),
            "raise the limit",
        ),
        None => (
            "the system refuses them (vm.overcommit_memory)".to_owned(),
            "free memory",
        ),
    };
    bail!(
        "a run with {} and microflow tables of {microflow_mib} MiB takes {needed} MiB at its \
         start, and {why}: {mend}, or lower {} or {}",
        counted(threads, "thread"),
        Key::MicroflowSlots,
        Key::Threads,
    )
}

/// Warns if a limit is below what the tables may need with `--max-flows`. The limit would be
/// reached only in a flood of flows, which is the worst time to find out.
pub(super) fn warn_of_limits(config: &PipelineConfig, sizes: &RunSizes) {
    warn_of_too_little(config);
    let tables = (sizes.microflow_table_bytes + sizes.flow_cache_max_bytes) as u64;
    let Some(limit) = lowest(Path::new("/")).filter(|limit| limit.bytes < tables) else {
        return;
    };
    let mib = |bytes: u64| grouped(bytes.div_ceil(1 << 20));
    // Reserve a fifth for everything else.
    let flows = config.max_flows as f64 * 0.8 * limit.bytes as f64 / tables as f64;
    say!(Warning MemoryLimited, max_bytes = tables, limit_bytes = limit.bytes;
        "the tables may take {} MiB, but {} allows {} MiB: {}. Lower {} to {}, or raise the limit",
        mib(tables),
        limit.by,
        mib(limit.bytes),
        limit.then,
        Key::MaxFlows,
        flows as u64 / 1_000 * 1_000,
    );
}

fn warn_of_too_little(config: &PipelineConfig) {
    let threads = (config.readers * config.threads) as u64;
    let least = LEAST_BYTES + LEAST_BYTES_A_THREAD * threads;
    let Some(limit) = address_space(Path::new("/")).filter(|limit| limit.bytes < least) else {
        return;
    };
    say!(Warning MemoryLimited, max_bytes = least, limit_bytes = limit.bytes;
        "{} is below {} MiB, which {} may need in addition to tables: the run may be aborted",
        limit.by,
        grouped(least >> 20),
        counted(threads, "thread"),
    );
}

/// The lowest limit, according to the file system at `root`.
fn lowest(root: &Path) -> Option<Limit> {
    let limits = [address_space(root), own_memory(root), cgroup(root)];
    limits.into_iter().flatten().min_by_key(|limit| limit.bytes)
}

/// The limit of the process on its address space.
fn address_space(root: &Path) -> Option<Limit> {
    let by = "the limit on address space (ulimit -v)";
    of_process(root, "Max address space", by)
}

/// The limit on the data of the process, which includes private mappings.
fn own_memory(root: &Path) -> Option<Limit> {
    of_process(root, "Max data size", "the limit on data (ulimit -d)")
}

fn of_process(root: &Path, name: &str, by: &'static str) -> Option<Limit> {
    let limits = fs::read_to_string(root.join("proc/self/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    Some(Limit {
        // The soft limit; "unlimited" is not a number.
        bytes: line.split_whitespace().next()?.parse().ok()?,
        by,
        then: "flows that do not fit end early (end reason 5)",
    })
}

/// The lowest memory limit of this process's control groups, of version 1 or 2.
fn cgroup(root: &Path) -> Option<Limit> {
    let own = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let of_line = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let (folder, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let folder = root.join(folder);
        let group = folder.join(path.trim_start_matches('/'));
        // The limits of enclosing groups apply too. In a container, the path may be that of the
        // host, and then only the root group is visible.
        let groups = group
            .ancestors()
            .take_while(|group| group.starts_with(&folder));
        let limits = groups.filter_map(|group| fs::read_to_string(group.join(file)).ok());
        limits.filter_map(|limit| limit.trim().parse().ok()).min()
    };
    Some(Limit {
        bytes: own.lines().filter_map(of_line).min()?,
        by: "the control group",
        then: "the system would kill this process",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file system that contains these files.
    fn with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    #[test]
    fn the_lowest_limit_counts() {
        const NONE: &str =
            "Max address space         unlimited            unlimited            bytes";
        const LOW: &str = "Max data size  1100 1100 bytes\nMax address space  900 unlimited bytes";
        let limits = ("proc/self/limits", NONE);
        let own = ("proc/self/cgroup", "4:cpu:/a\n0::/a/b\n");
        let outer = ("sys/fs/cgroup/a/memory.max", "1000\n");
        let inner = ("sys/fs/cgroup/a/b/memory.max", "max\n");
        let of = |files: &[(&str, &str)]| {
            let root = with(files);
            lowest(root.path()).map(|limit| limit.bytes)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[limits, own]), None);
        assert_eq!(of(&[limits, own, inner]), None);
        assert_eq!(of(&[limits, own, inner, outer]), Some(1_000));
        assert_eq!(of(&[("proc/self/limits", LOW), own, outer]), Some(900));
        let first = [
            ("proc/self/cgroup", "9:name=systemd:/\n4:memory:/x\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000\n"),
        ];
        assert_eq!(of(&first), Some(2_000), "the path is the host's");
    }
}
