// SPDX-License-Identifier: Apache-2.0
//! The token that clients on other machines must present.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::DashboardError;

/// A secret of 16 to 256 characters.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// Maximum number of bytes that are read from the file.
const FILE_BYTES: u64 = 4096;

impl Token {
    /// Reads a token from the first line of a file.
    ///
    /// # Errors
    /// [`DashboardError::File`] if the file cannot be read, [`DashboardError::Token`] if the line
    /// is not a valid token.
    pub fn read(path: &Path) -> Result<Self, DashboardError> {
        let place = path.display().to_string();
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(FILE_BYTES).read_to_string(&mut text))
            .map_err(|error| DashboardError::File {
                place: place.clone(),
                reason: error.to_string(),
            })?;
        let first = text.lines().next().unwrap_or_default();
        Self::parse(first.trim()).ok_or(DashboardError::Token { place })
    }

    /// The text as a token, if it is valid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
        let is_token = (16..=256).contains(&text.len()) && text.chars().all(is_letter);
        is_token.then(|| Self(text.to_owned()))
    }

    /// Whether a client presented this token. The comparison takes the same time for every wrong
    /// token of the same length.
    pub(crate) fn is(&self, said: &str) -> bool {
        let pairs = self.0.bytes().zip(said.bytes());
        let differ = pairs.fold(0, |differ, (left, right)| differ | (left ^ right));
        self.0.len() == said.len() && std::hint::black_box(differ) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_and_plain() {
        assert!(Token::parse("short").is_none());
        assert!(Token::parse("sixteen letters; or").is_none());
        let token = Token::parse("abcdefghijklmnop").unwrap();
        assert!(token.is("abcdefghijklmnop"));
        assert!(!token.is("abcdefghijklmnoq"));
        assert!(!token.is("abcdefghijklmnopq"));
        assert!(!token.is(""));
        assert_eq!(format!("{token:?}"), "Token(..)");
    }
}
