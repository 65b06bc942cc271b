// SPDX-License-Identifier: Apache-2.0
//! Why a stream of records cannot be read.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use turboflow_engine::wire::WireError;

use crate::messages::Unreadable;

/// Why records cannot be read.
#[derive(Debug, Error)]
pub enum RecordsError {
    /// The stream cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The stream.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The stream contains something other than messages of this run's definition.
    #[error("{}, at byte {offset}: {source}", path.display())]
    Message {
        /// The stream.
        path: PathBuf,
        /// Where the message begins.
        offset: u64,
        /// What is wrong with it.
        source: WireError,
    },
    /// The stream breaks a rule of the wire form.
    #[error("{}, at byte {offset}: {reason}", path.display())]
    Stream {
        /// The stream.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong, and the remedy.
        reason: &'static str,
    },
}

impl Unreadable {
    /// The error with its place in the stream.
    #[cold]
    pub(crate) fn at(self, path: PathBuf, offset: u64) -> RecordsError {
        let reason = match self {
            Self::Read(source) => return RecordsError::Read { path, source },
            Self::Wrong(source) => {
                return RecordsError::Message {
                    path,
                    offset,
                    source,
                };
            }
            Self::NoEnd => {
                "the file ends without the last message of its sender, so records may be missing"
            }
            Self::NoWatermark => {
                "too many records without a watermark: the sender has to send one in every cell"
            }
            Self::Repeated => "these records were read before: they are in the file twice",
            Self::Senders => {
                "records of another engine begin here: give each engine a file of its own"
            }
            Self::TooMany => {
                "the records of the file have more packets or bytes than 64 bits can count"
            }
        };
        RecordsError::Stream {
            path,
            offset,
            reason,
        }
    }
}
