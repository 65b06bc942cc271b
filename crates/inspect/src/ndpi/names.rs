// SPDX-License-Identifier: Apache-2.0
//! The library's names, and its confidences on our scale.

use std::ffi::{CStr, c_char};
use std::ptr::NonNull;

use turboflow_record::ApplicationNames;

use super::ffi;
use crate::Confidence;

/// More applications than any version has, so that a wrong count cannot lead to an endless list.
const MAX_APPLICATIONS: u32 = 4096;

/// Each version of the library renumbers its confidences, but their names stay the same.
const CONFIDENCES: [(&str, Confidence); 9] = [
    ("Match by port", Confidence::Port),
    ("Match by IP", Confidence::Address),
    ("DPI (partial cache)", Confidence::PartialCache),
    ("DPI (partial)", Confidence::Partial),
    ("DPI (cache)", Confidence::Cache),
    ("DPI", Confidence::Payload),
    ("Match by custom rule", Confidence::Rule),
    ("nBPF", Confidence::Rule),
    ("DPI (aggressive)", Confidence::Partial),
];

/// Our number of a confidence, and the library's name for it.
fn named(confidence: Confidence) -> (u8, String) {
    let known = CONFIDENCES.iter().find(|(_, ours)| *ours == confidence);
    let name = known.map_or("Unknown", |(name, _)| name);
    (confidence as u8, name.to_owned())
}

/// A text of the library, which lives as long as its module.
fn text(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: it is not null, and the library's names end with 0.
    let text = unsafe { CStr::from_ptr(pointer) };
    Some(text.to_string_lossy().into_owned())
}

/// Tells the shim how to map the library's confidences to ours.
pub(super) fn scale_confidences() {
    for number in 0..32 {
        // SAFETY: the shim answers null for numbers that the library does not have.
        let Some(name) = text(unsafe { ffi::turboflow_ndpi_confidence(number) }) else {
            break;
        };
        let known = CONFIDENCES.iter().find(|(known, _)| *known == name);
        let scaled = known.map_or(Confidence::Unknown, |(_, scaled)| *scaled);
        // SAFETY: has no conditions; numbers beyond the shim's table are left out there.
        unsafe { ffi::turboflow_ndpi_scale(number, scaled as u8) };
    }
}

/// All names that the library has.
pub(super) fn names(module: NonNull<ffi::Module>) -> ApplicationNames {
    let module = module.as_ptr();
    // SAFETY: has no conditions.
    let version = text(unsafe { ffi::turboflow_ndpi_version() }).unwrap_or_default();
    // SAFETY: the module is alive.
    let count = unsafe { ffi::turboflow_ndpi_applications(module) }.min(MAX_APPLICATIONS);
    let applications = (0..count).filter_map(|number| {
        let mut category = 0;
        // SAFETY: the module is alive, the number is below its count, the category is ours.
        let name =
            unsafe { ffi::turboflow_ndpi_application(module, number as u16, &raw mut category) };
        Some((number, text(name)?, category.try_into().unwrap_or(u8::MAX)))
    });
    let categories = (0..=u8::MAX).map_while(|number| {
        // SAFETY: the module is alive; the shim answers null for numbers that are none.
        let name = unsafe { ffi::turboflow_ndpi_category(module, number.into()) };
        Some((number, text(name)?))
    });
    let risks = (0..64).map_while(|bit| {
        // SAFETY: the shim answers null for numbers that are none.
        Some((bit, text(unsafe { ffi::turboflow_ndpi_risk(bit) })?))
    });
    ApplicationNames {
        library: format!("nDPI {version}"),
        applications: applications.collect(),
        categories: categories.collect(),
        confidences: Confidence::ALL.map(named).to_vec(),
        risks: risks.collect(),
    }
}
