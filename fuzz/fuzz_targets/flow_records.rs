// SPDX-License-Identifier: Apache-2.0
//! Any text file of flow records is read or refused.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use turboflow_formats::from_stream;

fuzz_target!(|bytes: &[u8]| {
    let Ok(reader) = from_stream(Box::new(Cursor::new(bytes.to_vec())), "fuzz") else { return };
    for batch in reader {
        if batch.is_err() {
            break;
        }
    }
});
