// SPDX-License-Identifier: Apache-2.0
//! The programs that tests and measurements run.

/// A program that can run on a frame without a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestedProgram {
    /// The engine.
    Microflows,
    /// Only the parser.
    Parse,
    /// No work: the cost of a run.
    Pass,
    /// Only reads the clock.
    ClockOnly,
    /// Only spreads frames over flows.
    SpreadOnly,
    /// The engine, on frames spread over flows.
    Fire,
    /// As `Fire`, with its return values counted. Exists only with a table of verdicts.
    FireCounted,
    /// Spreads frames over flows and asks for a redirection, which a test run does not carry out.
    RedirectOnly,
    /// Sends frames spread over flows from an interface.
    Send,
    /// Counts and drops frames. Exists only with a table of verdicts.
    Sink,
    /// A bridge that only redirects. Exists only if the engine is a bridge.
    RedirectAlone,
}
