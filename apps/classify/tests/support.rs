// SPDX-License-Identifier: Apache-2.0
//! Makes records from text.

use turboflow_classify::{Classified, Classifier, Model};
use turboflow_record::{Column, ColumnKind, FlowBatch, Schema, Value};

/// Records from CSV. Values are whole numbers or absent.
pub(crate) fn records(text: &str) -> (Schema, FlowBatch) {
    let mut lines = text.lines();
    let names = lines.next().expect("there is a header").split(',');
    let schema: Schema = names
        .map(|name| Column {
            name: name.to_owned(),
            kind: match name.ends_with("_ns") {
                true => ColumnKind::TimestampNs,
                false => ColumnKind::Unsigned { bits: 64 },
            },
            nullable: true,
        })
        .collect();
    let mut batch = FlowBatch::new(&schema);
    for line in lines {
        let row = line.split(',').map(|word| match word {
            "" => Value::Absent,
            number => Value::Unsigned(number.parse().expect("a whole number")),
        });
        batch.push_row(&row.collect::<Vec<_>>());
    }
    (schema, batch)
}

/// The class of each record by name, and the confidence.
pub(crate) fn classified(model: &str, text: &str) -> Vec<(String, f64)> {
    let model = Model::parse(model).expect("it is a model");
    let (schema, batch) = records(text);
    let mut classifier = Classifier::new(&model, &schema).expect("the records have the features");
    let mut found = Classified::default();
    classifier.classify(&batch, &mut found);
    let classes = found.classes.iter();
    let names = classes.map(|class| model.classes()[*class as usize].clone());
    names.zip(found.confidence.iter().copied()).collect()
}
