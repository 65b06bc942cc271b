// SPDX-License-Identifier: Apache-2.0
//! What an engine reports when it fails.

use std::error::Error;
use std::fmt;

/// An engine failed. Its message and its causes are the engine's own.
#[derive(Debug)]
pub struct EngineError(Box<dyn Error + Send + Sync>);

impl EngineError {
    /// Wraps the error of an engine.
    #[must_use]
    pub fn new(error: impl Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Error for EngineError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
