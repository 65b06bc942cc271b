// SPDX-License-Identifier: Apache-2.0
//! Frames over a stream socket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Bytes of the length before each frame.
const LENGTH_BYTES: usize = 4;
/// How long the other side may neither send nor take anything while it is waited for.
const LONGEST_WAIT: Timespec = Timespec {
    tv_sec: 30,
    tv_nsec: 0,
};
/// Size of the receive buffer, in bytes.
const IN_BYTES: usize = 1 << 18;

/// A stream socket that carries frames. Each is preceded by its length, 32 bits in network byte
/// order.
pub(crate) struct FrameStream {
    stream: UnixStream,
    out: Vec<u8>,
    sent: usize,
    input: Vec<u8>,
    /// The bytes of `input` that were received and not yet taken.
    filled: usize,
    longest_wait: Timespec,
}

impl FrameStream {
    /// # Errors
    /// If the socket cannot be set to non-blocking.
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            out: Vec::new(),
            sent: 0,
            input: vec![0; IN_BYTES],
            filled: 0,
            longest_wait: LONGEST_WAIT,
        })
    }

    /// Writes queued bytes, as far as there is room.
    fn write(&mut self) -> io::Result<()> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Reads once. Returns whether the stream goes on.
    fn read(&mut self) -> io::Result<bool> {
        if self.filled == self.input.len() {
            self.input.resize(2 * self.filled, 0);
        }
        match self.stream.read(&mut self.input[self.filled..]) {
            Ok(0) => Ok(false),
            Ok(bytes) => {
                self.filled += bytes;
                Ok(true)
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Passes all complete frames to `take`. Returns their number.
    fn take(&mut self, take: &mut dyn FnMut(&[u8])) -> usize {
        let (mut taken, mut frames) = (0, 0);
        while let Some((length, rest)) = self.input[taken..self.filled].split_first_chunk() {
            let length = u32::from_be_bytes(*length) as usize;
            let Some(frame) = rest.get(..length) else {
                break;
            };
            take(frame);
            taken += LENGTH_BYTES + length;
            frames += 1;
        }
        self.input.copy_within(taken..self.filled, 0);
        self.filled -= taken;
        frames
    }

    /// Queues a frame: [`Port::send`](crate::Port::send).
    pub(crate) fn send(&mut self, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let length = u32::try_from(length).expect("messages are short");
        self.out.extend(length.to_be_bytes());
        parts.iter().for_each(|part| self.out.extend(*part));
    }

    /// Sends and receives: [`Port::exchange`](crate::Port::exchange). It does both at the same
    /// time, because each side may have to read before it can write.
    pub(crate) fn exchange(&mut self, wait: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let mut frames = 0;
        loop {
            let is_over = self.out.is_empty() && (frames > 0 || !wait);
            if is_over {
                return Ok(true);
            }
            let mut interest = PollFlags::IN;
            if !self.out.is_empty() {
                interest |= PollFlags::OUT;
            }
            let mut polled = [PollFd::from_borrowed_fd(self.stream.as_fd(), interest)];
            match poll(&mut polled, Some(&self.longest_wait)) {
                Ok(0) => {
                    let seconds = self.longest_wait.tv_sec;
                    let what = format!("the pipeline has not answered for {seconds} s");
                    return Err(io::Error::new(ErrorKind::TimedOut, what));
                }
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let ready = polled[0].revents();
            if ready.contains(PollFlags::OUT) {
                self.write()?;
            }
            if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                let goes_on = self.read()?;
                frames += self.take(take);
                if !goes_on {
                    return Ok(false);
                }
            }
        }
    }
    /// Tells the other side that nothing more will come.
    pub(crate) fn close(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_other_side_is_an_error() {
        let (here, there) = UnixStream::pair().unwrap();
        let mut stream = FrameStream::new(here).unwrap();
        stream.longest_wait = Timespec::default();
        let failure = stream.exchange(true, &mut |_| ()).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::TimedOut);
        // What was queued is sent nevertheless.
        stream.send(&[b"frame"]);
        assert!(stream.exchange(false, &mut |_| ()).unwrap());
        let mut sent = [0; 9];
        (&there).read_exact(&mut sent).unwrap();
        assert_eq!(&sent, b"\0\0\0\x05frame");
        // The other side takes nothing, either.
        stream.send(&[&vec![0; 1 << 24]]);
        let failure = stream.exchange(false, &mut |_| ()).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::TimedOut);
    }
}
