// SPDX-License-Identifier: Apache-2.0
//! Pages of a mapping: made present before they are touched, given back once they were walked.
//!
//! Both take the kernel about as long as parsing takes the reader. Where there is another
//! processor, a thread does them, a window ahead.

use std::io;
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use memmap2::Mmap;

/// Pages of a file's mapping.
pub(super) struct Pages {
    map: Arc<Mmap>,
    /// Whether a thread is to be started once the walk goes on behind the first window: many files
    /// may be open, of which one is walked.
    is_thread_due: bool,
    is_walked: bool,
    ahead: Option<Ahead>,
}

impl Pages {
    /// `is_long`: whether a thread pays.
    pub(super) fn new(map: &Arc<Mmap>, is_long: bool) -> Self {
        let has_processor = || thread::available_parallelism().is_ok_and(|count| count.get() > 1);
        Self {
            map: Arc::clone(map),
            is_thread_due: is_long && has_processor(),
            is_walked: false,
            ahead: None,
        }
    }

    /// Makes `range` present, and begins with `next`, which is asked for later.
    ///
    /// # Errors
    /// Where the file has become shorter.
    pub(super) fn make_present(
        &mut self,
        range: Range<usize>,
        next: Range<usize>,
    ) -> io::Result<()> {
        if mem::replace(&mut self.is_walked, true) && mem::take(&mut self.is_thread_due) {
            // Without it, everything is done here.
            self.ahead = Ahead::start(&self.map).ok();
        }
        let mut rest = range;
        if let Some(ahead) = &mut self.ahead
            && let Some((begun, outcome)) = ahead.finish()
            && begun.start == rest.start
        {
            outcome?;
            rest.start = begun.end;
        }
        if rest.start < rest.end {
            populate(&self.map, rest)?;
        }
        if let Some(ahead) = &mut self.ahead
            && !next.is_empty()
        {
            ahead.begin(next);
        }
        Ok(())
    }

    /// Lets go of pages that were walked, so that a file larger than memory can be read without
    /// counting against this program.
    pub(super) fn give_back(&self, range: Range<usize>) {
        match &self.ahead {
            Some(ahead) => ahead.send(Ask::GiveBack(range)),
            None => release(&self.map, range),
        }
    }
}

/// A thread that asks the kernel. It ends when nobody can ask it any more.
struct Ahead {
    asks: SyncSender<Ask>,
    outcomes: Receiver<io::Result<()>>,
    /// What it makes present.
    begun: Option<Range<usize>>,
}

enum Ask {
    GiveBack(Range<usize>),
    MakePresent(Range<usize>),
}

impl Ahead {
    fn start(map: &Arc<Mmap>) -> io::Result<Self> {
        let map = Arc::clone(map);
        // One window is made present at a time, and those behind it are given back.
        let (asks, incoming) = sync_channel(4);
        let (finished, outcomes) = sync_channel(1);
        let work = move || {
            for ask in incoming {
                match ask {
                    Ask::MakePresent(range) => {
                        if finished.send(populate(&map, range)).is_err() {
                            break;
                        }
                    }
                    Ask::GiveBack(range) => release(&map, range),
                }
            }
        };
        thread::Builder::new()
            .name("pages".to_owned())
            .spawn(work)?;
        Ok(Self {
            asks,
            outcomes,
            begun: None,
        })
    }

    fn begin(&mut self, range: Range<usize>) {
        self.begun = Some(range.clone());
        self.send(Ask::MakePresent(range));
    }

    /// Waits for what was begun.
    fn finish(&mut self) -> Option<(Range<usize>, io::Result<()>)> {
        let begun = self.begun.take()?;
        let outcome = self.outcomes.recv().expect(ALIVE);
        Some((begun, outcome))
    }

    fn send(&self, ask: Ask) {
        self.asks.send(ask).expect(ALIVE);
    }
}

const ALIVE: &str = "the thread for pages works until nobody can ask it";

/// Where the kernel maps one page of a file that is in memory, it maps those around it too: in blocks of this size, which begin at
/// multiples of it (`fault_around_bytes`, unless told otherwise). To ask for one page of each takes half the time of asking for all.
#[cfg(target_os = "linux")]
const AROUND_BYTES: usize = 64 << 10;

/// Makes pages present, so that whoever reads them meets no error.
#[cfg(target_os = "linux")]
fn populate(map: &Mmap, range: Range<usize>) -> io::Result<()> {
    let address = map.as_ptr().addr();
    let read_before = pages_read();
    let mut at = range.start;
    while at < range.end {
        advise(map, at, 1)?;
        at = (address + at + 1).next_multiple_of(AROUND_BYTES) - address;
    }
    // What was not in memory may still not be there between those pages.
    match (read_before, pages_read()) {
        (Some(before), Some(after)) if before == after => Ok(()),
        _ => advise(map, range.start, range.len()),
    }
}

#[cfg(target_os = "linux")]
fn advise(map: &Mmap, start: usize, length: usize) -> io::Result<()> {
    /// The kernel (before 5.14) does not know the advice.
    const EINVAL: i32 = 22;
    match map.advise_range(memmap2::Advice::PopulateRead, start, length) {
        Err(error) if error.raw_os_error() != Some(EINVAL) => Err(error),
        _ => Ok(()),
    }
}

/// How often this thread has waited for a page that was not in memory.
#[cfg(target_os = "linux")]
fn pages_read() -> Option<i64> {
    let mut usage = mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel fills all of it where it returns 0.
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
    // SAFETY: the reader has walked past the range when it gives it back, and no frame borrows from
    // it (`Mapped::fill` takes the reader mutably); a page given back is read from the file again if
    // it is touched.
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
