// SPDX-License-Identifier: Apache-2.0
//! Names of the numbers that inspection gives: applications, categories, confidences and risks.

/// The names that an inspection library has for its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplicationNames {
    /// Name and version of the library: `nDPI 4.2.0`.
    pub library: String,
    /// Number, name and category of every protocol and service.
    pub applications: Vec<(u32, String, u8)>,
    /// Number and name of every category.
    pub categories: Vec<(u8, String)>,
    /// Number and name of what an application may be recognised by.
    pub confidences: Vec<(u8, String)>,
    /// Bit and name of every risk.
    pub risks: Vec<(u8, String)>,
}
