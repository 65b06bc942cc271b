// SPDX-License-Identifier: Apache-2.0
//! Any text, IPFIX or Parquet file of flow records is read or refused.
#![no_main]

use std::fs;
use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use turboflow_formats::{FlowReader, ReadError, from_stream, read};

fuzz_target!(|bytes: &[u8]| {
    read_all(from_stream(Box::new(Cursor::new(bytes.to_vec())), "fuzz"));
    // IPFIX and Parquet are read from files alone.
    if bytes.starts_with(b"\0\x0a") || bytes.starts_with(b"PAR1") {
        let path = std::env::temp_dir().join(format!("turboflow-fuzz-{}", std::process::id()));
        if fs::write(&path, bytes).is_ok() {
            read_all(read(&path));
        }
    }
});

fn read_all(reader: Result<FlowReader, ReadError>) {
    let Ok(mut reader) = reader else { return };
    while let Ok(Some(_)) = reader.next_batch() {}
    let _ = reader.damage();
}
