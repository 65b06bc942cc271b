// SPDX-License-Identifier: Apache-2.0
//! Any text is a definition or an error. A definition compiles or gives a reason, and survives a
//! round trip through text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use turboflow_merge::Layout;
use turboflow_packet::PARSED_INPUTS;
use turboflow_record::Definition;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let definition = match Definition::parse(text) {
        Ok(definition) => definition,
        Err(error) => {
            let lines = text.lines().count().max(1);
            assert!((1..=lines + 1).contains(&error.line), "{error}");
            assert_eq!(error.to_string().lines().count(), 1);
            return;
        }
    };
    assert_eq!(
        Definition::parse(&definition.to_toml()).as_ref(),
        Ok(&definition)
    );
    for biflow in [false, true] {
        match Layout::compile(&definition, biflow) {
            Ok(layout) => assert!(layout.schema().len() > definition.key.len() + 1),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    if let Err(error) = definition.check_inputs(PARSED_INPUTS, "software") {
        assert!(!error.to_string().is_empty());
    }
});
