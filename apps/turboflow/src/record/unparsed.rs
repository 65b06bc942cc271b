// SPDX-License-Identifier: Apache-2.0
//! `--unparsed-to FILE.pcap`: frames that are not packets, for inspection.

use std::io;

use serde::Serialize;
use turboflow_capture::write::PcapWriter;
use turboflow_packet::{Frame, LinkType};

use crate::keys::Key;
use crate::log::say;
use crate::unfinished_file::UnfinishedFile;
use crate::units::counted;

/// The file during the run.
pub(super) struct UnparsedFile {
    name: String,
    /// `None` after a failed write.
    writer: Option<PcapWriter<UnfinishedFile>>,
    failure: Option<io::Error>,
    frames: u64,
    frames_lost: u64,
}

impl UnparsedFile {
    pub(super) fn new(name: String, file: UnfinishedFile) -> io::Result<Self> {
        Ok(Self {
            name,
            writer: Some(PcapWriter::new(file, LinkType::Ethernet)?),
            failure: None,
            frames: 0,
            frames_lost: 0,
        })
    }

    /// Appends a frame. If the write fails, the file is abandoned and the run continues.
    pub(super) fn write(&mut self, frame: &Frame<'_>) {
        let written = self.writer.as_mut().map(|writer| writer.write_frame(frame));
        match written {
            Some(Ok(())) => self.frames += 1,
            Some(Err(error)) => self.fail(error),
            None => self.frames_lost += 1,
        }
    }

    fn fail(&mut self, error: io::Error) {
        self.failure = Some(error);
        self.writer = None;
        self.frames_lost += std::mem::take(&mut self.frames) + 1;
    }

    /// Completes the file. `not_handed_up`: frames that the engine could not deliver.
    pub(super) fn finish(mut self, not_handed_up: u64) -> UnparsedReport {
        if let Some(writer) = self.writer.take() {
            let completed = writer.finish().and_then(UnfinishedFile::complete);
            if let Err(error) = completed {
                self.frames_lost += std::mem::take(&mut self.frames);
                self.failure = Some(error);
            }
        }
        UnparsedReport {
            file: self.name,
            frames: self.frames,
            frames_lost: self.frames_lost + not_handed_up,
            error: self.failure.map(|error| error.to_string()),
        }
    }
}

/// The result of the file.
#[derive(Serialize)]
pub(super) struct UnparsedReport {
    file: String,
    /// Frames in the file.
    frames: u64,
    /// Other frames that are not packets: they came too fast, or could not be written.
    frames_lost: u64,
    error: Option<String>,
}

impl UnparsedReport {
    pub(super) const fn is_lossy(&self) -> bool {
        self.frames_lost > 0 || self.error.is_some()
    }

    /// The last part of the closing sentence of the run.
    pub(super) fn words(&self) -> String {
        let frames = counted(self.frames, "frame");
        format!("; {} has {frames} that are in no flow", self.file)
    }

    pub(super) fn say_losses(&self) {
        let (file, lost) = (self.file.as_str(), counted(self.frames_lost, "frame"));
        if let Some(error) = &self.error {
            say!(Error OutputFailed, output = file, frames_lost = self.frames_lost;
                "cannot write {file}: {error}; {lost} not written");
        } else if self.frames_lost > 0 {
            say!(Error OutputOverrun, output = file, frames_lost = self.frames_lost;
                "{lost} arrived too fast for the engine to hand over, and are not in {file}; the \
                 ledger counts them by reason. A lower {} lets more through", Key::SnapLength);
        }
    }
}
