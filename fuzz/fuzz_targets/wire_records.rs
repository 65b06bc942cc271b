// SPDX-License-Identifier: Apache-2.0
//! Any bytes are messages of microflow records or an error, with the decoder's state kept between
//! messages. Decoded records are encoded and decoded again without a change.

#![no_main]

use libfuzzer_sys::fuzz_target;
use turboflow_engine::MicroflowBatch;
use turboflow_engine::wire::{Decoder, Encoder, layout_id, message_bytes};
use turboflow_merge::Layout;
use turboflow_record::Definition;

const WIDE: &str = r#"
[key]
fields = ["source_address", "vlan"]
[[feature]]
name = "lengths"
op = "list"
of = "ip_length"
k = 4
"#;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, mut rest)) = bytes.split_first() else {
        return;
    };
    let definition = match first & 1 {
        0 => Definition::default(),
        _ => Definition::parse(WIDE).expect("the definition is valid"),
    };
    let layout = Layout::compile(&definition, first & 2 != 0).expect("the definition compiles");
    let mut decoder = Decoder::new(&layout);
    let mut batch = MicroflowBatch::default();
    for _ in 0..64 {
        // Often sets the id of this layout, so that the message body is reached.
        let mut message = rest.to_vec();
        if first & 4 != 0 && message.len() >= 16 {
            message[8..16].copy_from_slice(&layout_id(&layout).to_be_bytes());
        }
        let before = batch.len();
        let decoded = decoder.decode(&message, &mut batch);
        assert_eq!(
            batch.len() - before,
            decoded.map_or(0, |decoded| decoded.records)
        );
        let Ok(Some(length)) = message_bytes(rest) else {
            break;
        };
        let Some(behind) = rest.get(length..) else {
            break;
        };
        rest = behind;
    }
    let (mut again, mut repeated) = (Decoder::new(&layout), MicroflowBatch::default());
    Encoder::new(&layout, 1, 1_400).records(&batch, |message| {
        again
            .decode(message, &mut repeated)
            .expect("an encoded message is valid");
    });
    assert_eq!(format!("{batch:?}"), format!("{repeated:?}"));
});
