// SPDX-License-Identifier: Apache-2.0
//! A stub of the HTTP client of this name, with the part of its interface that the build script of
//! netgauze-flow-pkt uses. The build must not access the network, so every request fails.

use std::fmt::{self, Display};

/// The error of every request.
#[derive(Debug)]
pub struct Error;

impl Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("this build uses no network: registries come with the crate")
    }
}

impl std::error::Error for Error {}

/// The blocking client.
pub mod blocking {
    use super::Error;

    /// A builder that never makes a [`Client`].
    #[derive(Default)]
    pub struct ClientBuilder;

    impl ClientBuilder {
        /// A builder that always fails.
        #[must_use]
        pub fn new() -> Self {
            Self
        }

        /// Has no effect.
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

    /// A type without values.
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
        /// Never returned, because no client exists.
        pub fn send(self) -> Result<Self, Error> {
            match self {}
        }

        /// Cannot be called.
        ///
        /// # Errors
        /// Never returned, because no client exists.
        pub fn text(self) -> Result<String, Error> {
            match self {}
        }
    }
}
