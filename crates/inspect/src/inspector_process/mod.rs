// SPDX-License-Identifier: Apache-2.0
//! The process that inspects: what it runs, and how the meter starts it.
//!
//! It is the meter's own program, started a second time under a different name ([`is_child`]), with
//! a socket as its standard input. So there is no second program to install or to find.

#[cfg(feature = "dpi")]
mod confine;
#[cfg(feature = "dpi")]
mod serve;
mod spawn;

pub(crate) use spawn::{Child, Received};

/// The name under which the program is started as the process that inspects.
const CHILD_NAME: &str = "turboflow-inspector";

/// Whether this process was started to inspect. A program with inspection must call this first and,
/// if it is true, call only [`child_main`].
#[must_use]
pub fn is_child() -> bool {
    std::env::args_os()
        .next()
        .is_some_and(|name| name == CHILD_NAME)
}

/// Inspects what the meter sends, until the meter closes its end. Returns the exit code.
#[must_use]
pub fn child_main() -> std::process::ExitCode {
    #[cfg(feature = "dpi")]
    let outcome = serve::serve();
    #[cfg(not(feature = "dpi"))]
    let outcome: std::io::Result<()> = Err(std::io::Error::other(crate::NOT_BUILT));
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        // The meter notices the end of this process and reports it to the user.
        Err(_) => std::process::ExitCode::from(2),
    }
}
