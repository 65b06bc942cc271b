// SPDX-License-Identifier: Apache-2.0
//! The layout id, which identifies the record layout of a message.

use std::fmt::Write;

use turboflow_merge::{KeySteps, Layout, StateContent, StateStep, fnv_1a};
use turboflow_record::KeyField;

/// The layout id: the 64-bit FNV-1a hash of [`describe_layout`].
#[must_use]
pub fn layout_id(layout: &Layout) -> u64 {
    fnv_1a(describe_layout(layout).as_bytes())
}

/// A text that describes the records of a layout: version, key, and the content of every word of
/// further features. Definitions with the same text have the same record format, even if their
/// columns have other names.
#[must_use]
pub fn describe_layout(layout: &Layout) -> String {
    let steps = layout.steps();
    let mut text = format!("turboflow record {}\n", super::VERSION);
    if layout.is_biflow() {
        text.push_str("biflow\n");
    }
    match &steps.key {
        KeySteps::FiveTuple => text.push_str("key five-tuple\n"),
        KeySteps::Wide {
            words,
            header,
            family_shift,
            fields,
        } => {
            line(&mut text, format_args!("key words {words} header {header}"));
            if let Some(shift) = family_shift {
                line(&mut text, format_args!("  family at 0.{shift}"));
            }
            for field in fields {
                let presence = field.presence.map_or(-1, i16::from);
                line(
                    &mut text,
                    format_args!(
                        "  {} at {}.{} bits {} presence {presence}",
                        KeyField::name(field.field),
                        field.word,
                        field.shift,
                        field.bits
                    ),
                );
            }
        }
    }
    line(&mut text, format_args!("state words {}", steps.words));
    for step in &steps.state {
        line(&mut text, format_args!("  {}", content(step)));
    }
    text
}

fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    writeln!(text, "{words}").expect("text takes text");
}

fn content(step: &StateStep) -> String {
    let what = match &step.what {
        StateContent::BitOr => "or".to_owned(),
        StateContent::Bins(edges) => format!("bins {edges:?}"),
        StateContent::Count => "count".to_owned(),
        StateContent::First => "first".to_owned(),
        StateContent::Last => "last".to_owned(),
        StateContent::List(k) => format!("list {k}"),
        StateContent::Max => "max".to_owned(),
        StateContent::Min => "min".to_owned(),
        StateContent::Sum => "sum".to_owned(),
        StateContent::WideSquares => "squares 128".to_owned(),
        StateContent::WideSum => "sum 128".to_owned(),
    };
    let of = step.of.map_or("packets", |input| input.name());
    format!("{what} of {of} at {}", step.word)
}
