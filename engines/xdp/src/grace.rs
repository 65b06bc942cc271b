// SPDX-License-Identifier: Apache-2.0
//! Waits until every program that was running has ended.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

use crate::KernelError;

const DOING: &str = "wait for programs that run";

/// A thread that waits on request, so that the ring is read meanwhile: a wait takes some 10 ms.
///
/// The kernel lets an update of a map of maps return only when no program can still hold the map that was there before
/// (`maybe_wait_bpf_programs`; kernel 4.19 and later). That it holds another map than the tables is no matter: it waits for all
/// programs.
pub(crate) struct Grace {
    /// Until the thread has started.
    waiter: Option<Waiter>,
    requests: Option<Sender<()>>,
    ended: Receiver<libbpf_rs::Result<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread works with.
struct Waiter {
    inner: MapHandle,
    outer: MapHandle,
    requested: Receiver<()>,
    ends: Sender<libbpf_rs::Result<()>>,
}

impl Waiter {
    fn run(self) {
        let inner_fd = self.inner.as_fd().as_raw_fd().to_ne_bytes();
        while self.requested.recv().is_ok() {
            let waited = self
                .outer
                .update(&0u32.to_ne_bytes(), &inner_fd, MapFlags::ANY);
            if self.ends.send(waited).is_err() {
                return;
            }
        }
    }
}

impl Grace {
    /// Makes what the thread needs. It starts with the first wait, when this process may have given up rights: a thread that is there
    /// before keeps them.
    ///
    /// # Errors
    /// Where the kernel makes no map of maps.
    pub(crate) fn new() -> Result<Self, KernelError> {
        let (inner, outer) = maps().map_err(KernelError::refused(DOING))?;
        let (requests, requested) = channel();
        let (ends, ended) = channel();
        Ok(Self {
            waiter: Some(Waiter {
                inner,
                outer,
                requested,
                ends,
            }),
            requests: Some(requests),
            ended,
            thread: None,
        })
    }

    /// Begins to wait for the programs that run now.
    pub(crate) fn start(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.thread = Some(std::thread::spawn(|| waiter.run()));
        }
        if let Some(requests) = &self.requests {
            // A thread that is gone shows when its answer is asked for.
            let _ = requests.send(());
        }
    }

    /// Whether the wait is over.
    pub(crate) fn is_over(&self) -> Result<bool, KernelError> {
        match self.ended.try_recv() {
            Ok(waited) => waited.map(|()| true).map_err(KernelError::refused(DOING)),
            Err(TryRecvError::Empty) => Ok(false),
            Err(TryRecvError::Disconnected) => Err(KernelError::Incomplete { name: "grace" }),
        }
    }

    /// Waits for its end.
    pub(crate) fn wait(&self) -> Result<(), KernelError> {
        let gone = |_| KernelError::Incomplete { name: "grace" };
        let waited = self.ended.recv().map_err(gone)?;
        waited.map_err(KernelError::refused(DOING))
    }
}

impl Drop for Grace {
    fn drop(&mut self) {
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A map, and a map of maps that may hold it.
fn maps() -> libbpf_rs::Result<(MapHandle, MapHandle)> {
    let mut options = bpf_map_create_opts {
        sz: size_of::<bpf_map_create_opts>() as _,
        ..Default::default()
    };
    let inner = MapHandle::create(MapType::Array, Some("grace_inner"), 4, 4, 1, &options)?;
    options.inner_map_fd = inner.as_fd().as_raw_fd() as u32;
    let outer = MapHandle::create(MapType::ArrayOfMaps, Some("grace"), 4, 4, 1, &options)?;
    Ok((inner, outer))
}
