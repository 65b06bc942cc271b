// SPDX-License-Identifier: Apache-2.0
//! Record sizes: code generic over the number of state words, for a number known at run time.

/// Runs an expression with `N` as the number of state words. The unit tests of this crate use only
/// small definitions, so the larger sizes are not compiled for them again. `tests/` and the tests
/// of the program cover those sizes.
macro_rules! with_state_words {
    ($words:expr, $n:ident => $body:expr) => {{
        match $words {
            0 => {
                const $n: usize = 0;
                $body
            }
            8 => {
                const $n: usize = 8;
                $body
            }
            #[cfg(not(test))]
            24 => {
                const $n: usize = 24;
                $body
            }
            #[cfg(not(test))]
            56 => {
                const $n: usize = 56;
                $body
            }
            #[cfg(not(test))]
            120 => {
                const $n: usize = 120;
                $body
            }
            #[cfg(not(test))]
            504 => {
                const $n: usize = 504;
                $body
            }
            #[cfg(test)]
            other => unreachable!("{other} state words are for tests/, not for unit tests"),
            #[cfg(not(test))]
            other => unreachable!("{other} is not a supported number of state words"),
        }
    }};
}
pub(crate) use with_state_words;
