// SPDX-License-Identifier: Apache-2.0
//! The process that inspects: what it runs, and how the meter starts it.
//!
//! It is the meter's own program, started again under another name ([`is_child`]), with one socket
//! as its standard input. So there is no second program to install, and none to find.

#[cfg(feature = "dpi")]
mod confine;
#[cfg(feature = "dpi")]
mod serve;
mod spawn;

pub(crate) use spawn::{Child, Received};

/// The name under which a program is started to inspect.
const CHILD_NAME: &str = "turboflow-inspector";

/// Whether this process was started to inspect. A program that inspects asks this first, and then
/// calls [`child_main`] and nothing else.
#[must_use]
pub fn is_child() -> bool {
    std::env::args_os()
        .next()
        .is_some_and(|name| name == CHILD_NAME)
}

/// Inspects what the meter sends, until it closes its end. Returns the exit code.
#[must_use]
pub fn child_main() -> std::process::ExitCode {
    #[cfg(feature = "dpi")]
    let outcome = serve::serve();
    #[cfg(not(feature = "dpi"))]
    let outcome: std::io::Result<()> = Err(std::io::Error::other(crate::NOT_BUILT));
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        // The meter sees that it ended, and says so where people look.
        Err(_) => std::process::ExitCode::from(2),
    }
}
