// SPDX-License-Identifier: Apache-2.0
//! A veth pair in its own namespace, with the program listening at one end.

use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use turboflow_testing::{Need, Talk, is_missing};

use crate::support::{Folder, command, signal};

/// Packets are sent at this end.
pub(crate) const NEAR: &str = "va";
pub(crate) const FAR: &str = "vb";

/// The needs of every link.
const NEEDS: [Need<'static>; 4] = [
    Need::Root,
    Need::Tool("ip"),
    Need::Tool("tcpreplay"),
    Need::Tool("ethtool"),
];

/// The need for the xdp engine.
pub(crate) const XDP_ENGINE: Need<'static> = Need::Engine("xdp", cfg!(feature = "kernel"));

static LINKS: AtomicU32 = AtomicU32::new(0);

/// A silent link: no addresses, no IPv6, and only the test sends.
pub(crate) struct Link {
    namespace: String,
}

impl Link {
    /// Makes a link; `None` if the test is skipped because that is not possible.
    pub(crate) fn new() -> Option<Self> {
        Self::with(&[])
    }

    /// Like [`Link::new`], for a test that needs the xdp engine.
    pub(crate) fn for_xdp() -> Option<Self> {
        Self::with(&[XDP_ENGINE])
    }

    fn with(more: &[Need<'_>]) -> Option<Self> {
        let namespaces = || Need::Right("make network namespaces", may_make_namespaces());
        if is_missing(more) || is_missing(&NEEDS) || is_missing(&[namespaces()]) {
            return None;
        }
        let number = LINKS.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("turboflow-{}-{number}", std::process::id());
        let link = Self { namespace };
        succeed(Command::new("ip").args(["netns", "add", &link.namespace]));
        let quiet = "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $f; done";
        link.shell(quiet);
        link.ip(&["link", "add", NEAR, "type", "veth", "peer", "name", FAR]);
        for end in [NEAR, FAR, "lo"] {
            link.ip(&["link", "set", end, "up"]);
        }
        for end in [NEAR, FAR] {
            link.ip(&["link", "set", end, "mtu", "65535"]);
        }
        Some(link)
    }

    /// A command to run in the namespace.
    pub(crate) fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, program]);
        command.stdin(Stdio::null());
        command
    }

    #[track_caller]
    pub(crate) fn shell(&self, script: &str) {
        succeed(self.inside("bash").args(["-c", script]));
    }

    /// The output of a script.
    #[track_caller]
    pub(crate) fn shell_says(&self, script: &str) -> String {
        succeed(self.inside("bash").args(["-c", script]))
    }

    #[track_caller]
    pub(crate) fn ip(&self, words: &[&str]) {
        succeed(Command::new("ip").args(["-n", &self.namespace]).args(words));
    }

    /// Opens something in the namespace, such as a socket, which remains in it.
    pub(crate) fn open<T: Send + 'static>(&self, open: impl FnOnce() -> T + Send + 'static) -> T {
        let path = format!("/run/netns/{}", self.namespace);
        let opening = std::thread::spawn(move || {
            let namespace = std::fs::File::open(path).unwrap();
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), kind).unwrap();
            open()
        });
        opening.join().unwrap()
    }

    /// Sends a capture into the near end. Returns whether all frames were sent. They arrive in
    /// order and on one CPU: without pinning, the scheduler might move the sender within a flow,
    /// and such a link has one queue per CPU.
    #[track_caller]
    pub(crate) fn replay(&self, capture: &str, options: &[&str]) -> bool {
        let mut command = self.inside("taskset");
        command.args(["-c", "0", "tcpreplay", "-q", "-i", NEAR]);
        command.args(options).arg(capture);
        let said = succeed(&mut command);
        let failed = said
            .lines()
            .find_map(|line| line.trim().strip_prefix("Failed packets:"));
        // tcpreplay prints no count if it gives up.
        failed.is_some_and(|count| count.trim() == "0")
    }

    /// Starts the program, and returns once it listens.
    pub(crate) fn record(&self, interfaces: &[&str], options: &[&str]) -> Recording {
        let mut args = vec!["record", "--ledger", "ledger.json"];
        args.extend(interfaces.iter().flat_map(|interface| ["-i", interface]));
        args.extend(options);
        self.start(Folder::new(), &args, &[])
    }

    /// Starts the program in this folder, and returns once it listens.
    pub(crate) fn start(
        &self,
        folder: Folder,
        args: &[&str],
        environment: &[(&str, &str)],
    ) -> Recording {
        self.start_by(&[], folder, args, environment)
    }

    /// Starts the program through a command that replaces itself with its last argument.
    pub(crate) fn start_by(
        &self,
        by: &[&str],
        folder: Folder,
        args: &[&str],
        environment: &[(&str, &str)],
    ) -> Recording {
        let program = command([""; 0]).get_program().to_os_string();
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.namespace])
            .args(by)
            .arg(program);
        let mut child = command
            .args(args)
            .envs(environment.iter().copied())
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut recording = Recording {
            stdout: Talk::of(child.stdout.take().unwrap()),
            stderr: Talk::of(child.stderr.take().unwrap()),
            program: Program(child),
            folder,
        };
        recording.wait_for("seed");
        recording
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["netns", "del", &self.namespace])
            .status();
    }
}

/// A process that is killed if the test fails.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The listening program.
pub(crate) struct Recording {
    program: Program,
    pub(crate) folder: Folder,
    pub(crate) stdout: Talk,
    stderr: Talk,
}

/// The outcome of a recording.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) said: String,
    pub(crate) ledger: Value,
    pub(crate) folder: Folder,
}

impl Recording {
    /// Waits until standard error has a line with these words.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, words: &str) {
        self.stderr.wait_for(words);
    }

    /// Everything written to standard error so far.
    pub(crate) fn said(&self) -> &str {
        self.stderr.said()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(&self.program.0, name);
    }

    pub(crate) fn id(&self) -> u32 {
        self.program.0.id()
    }

    /// Asks it to end, and waits for that.
    pub(crate) fn interrupt(self) -> Ended {
        self.signal("INT");
        self.end()
    }

    /// Waits for the exit of a killed program.
    pub(crate) fn killed(mut self) -> Folder {
        assert_eq!(self.program.0.wait().unwrap().code(), None);
        self.folder
    }

    /// Waits until it exits by itself.
    pub(crate) fn end(mut self) -> Ended {
        let said = self.stderr.rest().to_owned();
        let code = self.program.0.wait().unwrap().code();
        let ledger = self.folder.read("ledger.json");
        Ended {
            code,
            said,
            ledger: serde_json::from_str(&ledger).unwrap(),
            folder: self.folder,
        }
    }
}

impl Ended {
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.ledger[name].as_u64().unwrap()
    }

    /// Asserts the exit code, and conservation according to the kernel and the ledger.
    #[track_caller]
    pub(crate) fn balanced(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.said);
        assert_eq!(self.ledger["balanced"], true, "{:#}", self.ledger);
        let delivered = self.count("packets_received");
        let (dropped, unread) = (self.count("source_dropped"), self.count("source_unread"));
        assert_eq!(self.count("source_seen"), delivered + dropped + unread);
        assert_eq!(self.count("packets_resident"), 0);
        let rejected = ["non_ip", "malformed", "truncated", "unknown_link_type"];
        let rejected = rejected.map(|reason| self.count(&format!("packets_{reason}")));
        let rejected: u64 = rejected.iter().sum();
        assert_eq!(self.count("packets_recorded") + rejected, delivered);
        self
    }
}

/// Even root may lack this right in a container.
fn may_make_namespaces() -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| {
        let mut unshare = Command::new("unshare");
        let output = unshare.args(["--net", "--mount", "true"]).output();
        output.is_ok_and(|output| output.status.success())
    })
}

#[track_caller]
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
