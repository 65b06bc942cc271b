// SPDX-License-Identifier: Apache-2.0
//! Pages of a mapping: populated before they are touched, released after the walk.
//!
//! Both take the kernel about as long as parsing takes the reader. If there is another processor, a
//! thread does them one window ahead.

use std::io;
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use memmap2::Mmap;

/// The pages of a file's mapping.
pub(super) struct Pages {
    map: Arc<Mmap>,
    /// Whether to start a thread when the walk leaves the first window. Not before, since many
    /// files may be open while only one is walked.
    is_thread_due: bool,
    is_walked: bool,
    thread: Option<PageThread>,
}

impl Pages {
    /// `is_long`: whether the file is long enough for a thread to pay.
    pub(super) fn new(map: &Arc<Mmap>, is_long: bool) -> Self {
        let has_processor = || thread::available_parallelism().is_ok_and(|count| count.get() > 1);
        Self {
            map: Arc::clone(map),
            is_thread_due: is_long && has_processor(),
            is_walked: false,
            thread: None,
        }
    }

    /// Populates `range`, and starts to populate `next`, which the walk needs later.
    ///
    /// # Errors
    /// If the file has become shorter.
    pub(super) fn make_present(
        &mut self,
        range: Range<usize>,
        next: Range<usize>,
    ) -> io::Result<()> {
        if mem::replace(&mut self.is_walked, true) && mem::take(&mut self.is_thread_due) {
            // If the thread cannot be started, its work is done here.
            self.thread = PageThread::start(&self.map).ok();
        }
        let mut rest = range;
        if let Some(thread) = &mut self.thread
            && let Some((begun, outcome)) = thread.finish()
            && begun.start == rest.start
        {
            outcome?;
            rest.start = begun.end;
        }
        if rest.start < rest.end {
            populate(&self.map, rest)?;
        }
        if let Some(thread) = &mut self.thread
            && !next.is_empty()
        {
            thread.begin(next);
        }
        Ok(())
    }

    /// Releases pages after the walk, so that a file larger than memory does not count as this
    /// program's memory.
    pub(super) fn give_back(&self, range: Range<usize>) {
        match &self.thread {
            Some(thread) => thread.send(PageRequest::GiveBack(range)),
            None => release(&self.map, range),
        }
    }
}

/// A thread that populates and releases pages. It ends when this handle is dropped.
struct PageThread {
    requests: SyncSender<PageRequest>,
    outcomes: Receiver<io::Result<()>>,
    /// The range that is being populated.
    begun: Option<Range<usize>>,
}

enum PageRequest {
    GiveBack(Range<usize>),
    MakePresent(Range<usize>),
}

impl PageThread {
    fn start(map: &Arc<Mmap>) -> io::Result<Self> {
        let map = Arc::clone(map);
        // One window is populated at a time, and earlier ones are released.
        let (requests, incoming) = sync_channel(4);
        let (finished, outcomes) = sync_channel(1);
        let work = move || {
            for request in incoming {
                match request {
                    PageRequest::MakePresent(range) => {
                        if finished.send(populate(&map, range)).is_err() {
                            break;
                        }
                    }
                    PageRequest::GiveBack(range) => release(&map, range),
                }
            }
        };
        thread::Builder::new()
            .name("pages".to_owned())
            .spawn(work)?;
        Ok(Self {
            requests,
            outcomes,
            begun: None,
        })
    }

    fn begin(&mut self, range: Range<usize>) {
        self.begun = Some(range.clone());
        self.send(PageRequest::MakePresent(range));
    }

    /// Waits for the range that is being populated.
    fn finish(&mut self) -> Option<(Range<usize>, io::Result<()>)> {
        let begun = self.begun.take()?;
        let outcome = self.outcomes.recv().expect(ALIVE);
        Some((begun, outcome))
    }

    fn send(&self, request: PageRequest) {
        self.requests.send(request).expect(ALIVE);
    }
}

const ALIVE: &str = "the thread for pages runs until its handle is dropped";

/// When the kernel maps a page of a file that is in memory, it also maps the aligned block of this
/// size around it (`fault_around_bytes`, by default). Touching one page per block takes half the
/// time of touching all.
#[cfg(target_os = "linux")]
const AROUND_BYTES: usize = 64 << 10;

/// Populates pages, so that reading them causes no fault.
#[cfg(target_os = "linux")]
fn populate(map: &Mmap, range: Range<usize>) -> io::Result<()> {
    let address = map.as_ptr().addr();
    let read_before = pages_read();
    let mut at = range.start;
    while at < range.end {
        advise(map, at, 1)?;
        at = (address + at + 1).next_multiple_of(AROUND_BYTES) - address;
    }
    // Pages between them may still be missing if they were not in memory.
    match (read_before, pages_read()) {
        (Some(before), Some(after)) if before == after => Ok(()),
        _ => advise(map, range.start, range.len()),
    }
}

#[cfg(target_os = "linux")]
fn advise(map: &Mmap, start: usize, length: usize) -> io::Result<()> {
    /// The advice is unknown to the kernel (before 5.14).
    const EINVAL: i32 = 22;
    match map.advise_range(memmap2::Advice::PopulateRead, start, length) {
        Err(error) if error.raw_os_error() != Some(EINVAL) => Err(error),
        _ => Ok(()),
    }
}

/// How many times this thread has waited for a page to be read from disk.
#[cfg(target_os = "linux")]
fn pages_read() -> Option<i64> {
    let mut usage = mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel fills the whole structure if it returns 0.
    let usage = unsafe {
        match libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) {
            0 => usage.assume_init(),
            _ => return None,
        }
    };
    Some(usage.ru_majflt)
}

#[cfg(target_os = "linux")]
fn release(map: &Mmap, range: Range<usize>) {
    // SAFETY: the walk has passed the range, and no frame borrows from it (`Mapped::fill` borrows
    // the reader mutably). A released page is read from the file again if it is touched.
    let _ = unsafe {
        map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, range.start, range.len())
    };
}

#[cfg(not(target_os = "linux"))]
fn populate(_map: &Mmap, _range: Range<usize>) -> io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn release(_map: &Mmap, _range: Range<usize>) {}
