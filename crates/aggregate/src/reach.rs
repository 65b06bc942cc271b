// SPDX-License-Identifier: Apache-2.0
//! How the merge asks for memory ahead, by how large the table is and how soon flows come again.
//!
//! A line that is asked for into the first-level cache keeps one of that cache's few places for lines under way; into the second
//! level there are more. What lies ahead takes room in the first level, too: a longer way costs more than it gains while
//! most lines are missing, and pays where few are, as with skewed traffic, whose misses come one by one. Asking takes time by itself: one line
//! a cycle.
//!
//! | way | tag lines, records | into | blocks from one stage to the next |
//! |---|---|---|---|
//! | [`Near`] | records only, one by one | the first level | 4 |
//! | [`Far`] | one by one | the second level | 8; 16 where it is [`Way::Farther`] |
//! | [`Together`] | those of many blocks one right behind the other | the second level | 16 |
//! | [`Growing`], while a table grows | one by one | the second level | 8 |
//!
//! `Together` is for processors on which a request waits until its address is translated, and only so much that comes after it can be
//! under way meanwhile: on Zen 4, the work on some six records. In a table of gigabytes that translation takes as long as the
//! line itself. Where most records need one, six are waited for at a time; where few do, each is waited for alone, but requests
//! for addresses that are known, one right behind the other, wait together.
//!
//! `Farther` and `Together` are only where a record's line is one vector. On machines with narrower ones nobody has measured them, and
//! every way of every loop takes its time to compile: there, and for loops over the largest records, they are `Far`.
//!
//! From which size on which way is taken was tried out with one table and each way in turn; `docs/evaluation.md` has what came of it.
//!
//! | processor | flows come again soon | `Near` up to | then |
//! |---|---|---|---|
//! | Intel's (Xeon with AMX) | seldom | 24 MB | `Far` |
//! | | often | 4 MB | `Farther`; `Far` where records have many words (`merge.rs`) |
//! | others (Zen 4) | seldom | 4 MB | `Far` |
//! | | often | 4 MB | `Far`; from 512 MB on `Together` |

use turboflow_merge::{overlaps_translations, prefetch, prefetch_far};

/// How a chunk's lines are asked for: see the module.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Near,
    Far,
    Farther,
    Together,
    Growing,
}

/// Which way is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ways {
    /// By size, from which the further ones begin, in bytes: where flows seldom come again soon, and where they often do.
    BySize { seldom: Sizes, often: Sizes },
    /// For tests of what small tables would not show.
    Always(Way),
}

/// From which sizes of a table on, in bytes, it is not [`Near`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    far_bytes: usize,
    farther_bytes: usize,
    together_bytes: usize,
}

impl Sizes {
    const fn way(self, size_bytes: usize) -> Way {
        if size_bytes < self.far_bytes {
            Way::Near
        } else if size_bytes < self.farther_bytes {
            Way::Far
        } else if size_bytes < self.together_bytes {
            Way::Farther
        } else {
            Way::Together
        }
    }
}

impl Ways {
    /// The best of this machine.
    pub(crate) fn of_this_machine() -> Self {
        let ordinary = Sizes {
            far_bytes: 4 << 20,
            farther_bytes: usize::MAX,
            together_bytes: usize::MAX,
        };
        if overlaps_translations() {
            Self::BySize {
                seldom: Sizes {
                    far_bytes: 24 << 20,
                    ..ordinary
                },
                often: Sizes {
                    farther_bytes: 4 << 20,
                    ..ordinary
                },
            }
        } else {
            Self::BySize {
                seldom: ordinary,
                often: Sizes {
                    farther_bytes: 512 << 20,
                    together_bytes: 512 << 20,
                    ..ordinary
                },
            }
        }
    }

    /// That for a table; `often` says whether flows come again soon, and is asked where it matters.
    #[inline]
    pub(crate) fn way(&self, size_bytes: usize, often: impl FnOnce() -> bool) -> Way {
        match self {
            Self::Always(way) => *way,
            Self::BySize {
                seldom,
                often: sizes,
            } => {
                let ways = [seldom.way(size_bytes), sizes.way(size_bytes)];
                ways[usize::from(ways[0] != ways[1] && often())]
            }
        }
    }
}

/// How lines are asked for.
pub(crate) trait Reach {
    /// Into the second-level cache, or the first.
    const FAR: bool;
    /// Whether tag lines are asked for, too.
    const LINES: bool = true;
    /// Those of as many blocks together as the stages are apart, or each as soon as it is known.
    const TOGETHER: bool = false;
    /// Whether the table is on its way to a larger region: some keys are in the old one.
    const GROWING: bool = false;

    /// Asks for the lines of a `T`.
    #[inline(always)]
    fn fetch<T>(pointer: *const T) {
        if Self::FAR {
            prefetch_far(pointer);
        } else {
            prefetch(pointer);
        }
    }
}

pub(crate) struct Near;
pub(crate) struct Far;
pub(crate) struct Together;
pub(crate) struct Growing;

impl Reach for Near {
    const FAR: bool = false;
    /// A thirtieth of the table: a processor waits for them less than it takes to ask.
    const LINES: bool = false;
}

impl Reach for Far {
    const FAR: bool = true;
}

impl Reach for Together {
    const FAR: bool = true;
    const TOGETHER: bool = true;
}

impl Reach for Growing {
    const FAR: bool = true;
    const GROWING: bool = true;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_how_soon_flows_come_again_only_where_it_matters() {
        let near = Sizes {
            far_bytes: 100,
            farther_bytes: 500,
            together_bytes: 1_000,
        };
        let far = Sizes {
            far_bytes: 10,
            ..near
        };
        let ways = Ways::BySize {
            seldom: near,
            often: far,
        };
        let asked = || unreachable!("both ways are one");
        assert_eq!(ways.way(9, asked), Way::Near);
        assert_eq!(ways.way(50, || false), Way::Near);
        assert_eq!(ways.way(50, || true), Way::Far);
        assert_eq!(ways.way(100, asked), Way::Far);
        assert_eq!(ways.way(999, asked), Way::Farther);
        assert_eq!(ways.way(1_000, asked), Way::Together);
        assert_eq!(Ways::Always(Way::Together).way(1, asked), Way::Together);
    }
}
