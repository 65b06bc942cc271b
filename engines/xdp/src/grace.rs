// SPDX-License-Identifier: Apache-2.0
//! Waits until every program that was running has ended.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

use crate::KernelError;

const DOING: &str = "wait for programs that run";

/// A thread that waits on request, while the ring is still read: a wait takes about 10 ms.
///
/// An update of a map of maps returns only when no running program can still use the replaced map
/// (`maybe_wait_bpf_programs`; kernel 4.19 and later). The kernel waits for all programs, so the
/// map of maps need not contain the tables.
pub(crate) struct Grace {
    maps: Arc<Maps>,
    ends: Sender<libbpf_rs::Result<()>>,
    ended: Receiver<libbpf_rs::Result<()>>,
    /// `None` before the first wait.
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

/// A map, and a map of maps that contains it.
struct Maps {
    inner: MapHandle,
    outer: MapHandle,
}

impl Maps {
    fn wait(&self) -> libbpf_rs::Result<()> {
        let inner_fd = self.inner.as_fd().as_raw_fd().to_ne_bytes();
        self.outer
            .update(&0u32.to_ne_bytes(), &inner_fd, MapFlags::ANY)
    }
}

impl Grace {
    /// Creates what the thread needs. The thread starts with the first wait, after this process may
    /// have dropped privileges: an earlier thread would keep them.
    ///
    /// # Errors
    /// Where the kernel cannot create a map of maps.
    pub(crate) fn new() -> Result<Self, KernelError> {
        let maps = maps().map_err(KernelError::refused(DOING))?;
        let (ends, ended) = channel();
        Ok(Self {
            maps: Arc::new(maps),
            ends,
            ended,
            thread: None,
        })
    }

    /// Starts waiting for the programs that run now.
    pub(crate) fn start(&mut self) {
        if self.thread.is_none() {
            self.thread = self.start_thread().ok();
        }
        match &self.thread {
            // If the thread has ended, receiving its answer reports that.
            Some((requests, _)) => drop(requests.send(())),
            // No thread can be started: waits here. The ring is not read meanwhile, but nothing is
            // lost.
            None => drop(self.ends.send(self.maps.wait())),
        }
    }

    fn start_thread(&self) -> io::Result<(Sender<()>, JoinHandle<()>)> {
        let (maps, ends) = (Arc::clone(&self.maps), self.ends.clone());
        let (requests, requested) = channel();
        let run = move || {
            for () in requested {
                // The receiver is gone when the engine is dropped.
                let _ = ends.send(maps.wait());
            }
        };
        let thread = Builder::new().name("grace".to_owned()).spawn(run)?;
        Ok((requests, thread))
    }

    fn is_gone(&self) -> bool {
        let thread = self.thread.as_ref();
        thread.is_some_and(|(_, thread)| thread.is_finished())
    }

    /// Whether the wait has ended.
    pub(crate) fn is_over(&self) -> Result<bool, KernelError> {
        match self.ended.try_recv() {
            Ok(waited) => waited.map(|()| true).map_err(KernelError::refused(DOING)),
            Err(_) if self.is_gone() => Err(KernelError::Incomplete { name: "grace" }),
            Err(_) => Ok(false),
        }
    }

    /// Blocks until the wait has ended.
    pub(crate) fn wait(&self) -> Result<(), KernelError> {
        let gone = |_| KernelError::Incomplete { name: "grace" };
        let waited = self.ended.recv().map_err(gone)?;
        waited.map_err(KernelError::refused(DOING))
    }
}

impl Drop for Grace {
    fn drop(&mut self) {
        if let Some((requests, thread)) = self.thread.take() {
            drop(requests);
            let _ = thread.join();
        }
    }
}

fn maps() -> libbpf_rs::Result<Maps> {
    let mut options = bpf_map_create_opts {
        sz: size_of::<bpf_map_create_opts>() as _,
        ..Default::default()
    };
    let inner = MapHandle::create(MapType::Array, Some("grace_inner"), 4, 4, 1, &options)?;
    options.inner_map_fd = inner.as_fd().as_raw_fd() as u32;
    let outer = MapHandle::create(MapType::ArrayOfMaps, Some("grace"), 4, 4, 1, &options)?;
    Ok(Maps { inner, outer })
}
