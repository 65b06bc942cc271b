// SPDX-License-Identifier: Apache-2.0
//! The port between this process and the pipeline.

use std::io;

/// A port that carries frames to the pipeline and back, in order.
pub trait Port: Send {
    /// The name of the port, for messages.
    fn name(&self) -> &str;

    /// The longest frame that the port takes, in bytes.
    fn longest_frame_bytes(&self) -> usize {
        usize::from(u16::MAX)
    }

    /// Queues a frame that consists of these parts.
    fn send(&mut self, parts: &[&[u8]]);

    /// Sends what is queued, and passes the frames that have arrived to `take`. With `wait`, waits
    /// until something has arrived, but not longer than the port allows. Returns false if the other
    /// side is gone.
    ///
    /// # Errors
    /// An error of the operating system.
    fn exchange(&mut self, wait: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool>;
}
