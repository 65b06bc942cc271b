// SPDX-License-Identifier: Apache-2.0
//! Runs the program, and makes captures.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use turboflow_testing::Need;

/// The outcome of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Asserts the exit code. On failure, shows all output.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Asserts that standard error contains all the words.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(
                self.stderr.contains(word),
                "{word:?} is missing in {}",
                self.stderr
            );
        }
        self
    }
}

/// The program, ready to start.
pub(crate) fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_turboflow"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs the program to its end.
pub(crate) fn turboflow<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    finish(&mut command(args))
}

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The library that compiles filters, found as the program finds it.
pub(crate) fn libpcap() -> Need<'static> {
    let ran = turboflow(["record", "-q", "-r", &office(), "tcp"]);
    Need::Library("libpcap", !ran.stderr.contains("need libpcap"))
}

/// Sends a signal to a process.
pub(crate) fn signal(child: &Child, name: &str) {
    // The shell's builtin, because minimal systems have no `kill` program.
    let status = Command::new("sh")
        .args(["-c", &format!("kill -{name} {}", child.id())])
        .status();
    assert!(status.unwrap().success());
}

/// Makes a named pipe, and returns its path.
pub(crate) fn make_pipe(folder: &Folder, name: &str) -> String {
    let path = folder.file(name);
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    path
}

/// A temporary folder of one test.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a file in the folder, as an argument.
    pub(crate) fn file(&self, name: &str) -> String {
        self.path().join(name).display().to_string()
    }

    /// Writes a file, and returns its path.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::write(self.path().join(name), bytes).unwrap();
        self.file(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// The names of the files in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// The path of a file of the project.
pub(crate) fn project(path: &str) -> String {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(path).display().to_string()
}

/// The large sample.
pub(crate) fn office() -> String {
    project("samples/office.pcap")
}

/// The header of a pcap file with microsecond timestamps.
pub(crate) fn pcap_header(link_type: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(0xa1b2_c3d4_u32.to_le_bytes());
    bytes.extend(2_u16.to_le_bytes());
    bytes.extend(4_u16.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(262_144_u32.to_le_bytes());
    bytes.extend(link_type.to_le_bytes());
    bytes
}

/// A packet record of a pcap file.
pub(crate) fn pcap_packet(microseconds: u64, frame: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(((microseconds / 1_000_000) as u32).to_le_bytes());
    bytes.extend(((microseconds % 1_000_000) as u32).to_le_bytes());
    bytes.extend((frame.len() as u32).to_le_bytes());
    bytes.extend((frame.len() as u32).to_le_bytes());
    bytes.extend(frame);
    bytes
}

/// An Ethernet frame with a UDP packet over IPv4 from this source port.
pub(crate) fn udp_frame(source_port: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
    frame.extend([
        0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2,
    ]);
    frame.extend(source_port.to_be_bytes());
    frame.extend([0, 53, 0, 26, 0, 0]);
    frame.extend([0; 18]);
    frame
}

/// A pcap file of this many UDP packets, one per flow, a millisecond apart.
pub(crate) fn udp_capture(packets: u16) -> Vec<u8> {
    let mut bytes = pcap_header(1);
    for index in 0..packets {
        bytes.extend(pcap_packet(
            1_700_000_000_000_000 + u64::from(index) * 1_000,
            &udp_frame(index),
        ));
    }
    bytes
}

/// The lines of a CSV without its header, sorted.
pub(crate) fn rows(csv: &str) -> Vec<String> {
    let mut rows: Vec<_> = csv.lines().skip(1).map(str::to_owned).collect();
    rows.sort();
    rows
}
