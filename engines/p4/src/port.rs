// SPDX-License-Identifier: Apache-2.0
//! The port between this process and the pipeline.

use std::io;

/// A port that carries frames to the pipeline and back, in order.
pub trait Port: Send {
    /// Its name, for messages.
    fn name(&self) -> &str;

    /// The longest frame that it takes, in bytes.
    fn longest_frame_bytes(&self) -> usize {
        usize::from(u16::MAX)
    }

    /// Queues a frame, made of these parts.
    fn send(&mut self, parts: &[&[u8]]);

    /// Sends what is queued, and hands what has come meanwhile to `take`. With `wait`, not before
    /// something has come, as far as the port has the patience. Returns false if the other side is
    /// gone.
    ///
    /// # Errors
    /// An error of the operating system.
    fn exchange(&mut self, wait: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool>;
}
