// SPDX-License-Identifier: Apache-2.0
//! As much of the HTTP client of this name as the build script of netgauze-flow-pkt names: it must
//! not ask anybody anything, and fails where it tries to.

use std::fmt::{self, Display};

/// A request was made.
#[derive(Debug)]
pub struct Error;

impl Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("this build asks nobody: registries come with the crate")
    }
}

impl std::error::Error for Error {}

/// The client that waits for its answers.
pub mod blocking {
    use super::Error;

    /// Never makes a [`Client`].
    #[derive(Default)]
    pub struct ClientBuilder;

    impl ClientBuilder {
        /// One that refuses.
        #[must_use]
        pub fn new() -> Self {
            Self
        }

        /// Changes nothing.
        #[must_use]
        pub fn user_agent(self, _name: &str) -> Self {
            self
        }

        /// # Errors
        /// Always.
        pub fn build(self) -> Result<Client, Error> {
            Err(Error)
        }
    }

    /// There is none.
    pub enum Client {}

    impl Client {
        /// Cannot be called.
        #[must_use]
        pub fn get(&self, _url: &str) -> Self {
            match *self {}
        }

        /// Cannot be called.
        ///
        /// # Errors
        /// Would be those of the request.
        pub fn send(self) -> Result<Self, Error> {
            match self {}
        }

        /// Cannot be called.
        ///
        /// # Errors
        /// Would be those of the answer.
        pub fn text(self) -> Result<String, Error> {
            match self {}
        }
    }
}
