// SPDX-License-Identifier: Apache-2.0
//! Models small enough to evaluate by hand.

use turboflow_classify::{Classified, Classifier, Model};
use turboflow_record::{ColumnKind, ValueData};

use crate::support::{classified, records};

/// Two trees: one by the port, one by the mean length.
const FOREST: &str = "\
turboflow-model 1
note by hand
# what is behind a sign like this is passed over
absent -1
feature dst_port
feature bytes/packets
class dns
class web
tree
node 0 53 1 2
leaf 1 0
leaf 0.25 0.75
tree
node 1 100.5 1 2
leaf 0.5 0.5
node 0 0 3 4
leaf 1 0
leaf 0 1
";

const RECORDS: &str = "\
dst_port,packets,bytes
53,1,60
443,2,3000
443,1,100
,2,3000
443,0,0
";

#[test]
fn a_forest_is_the_mean_of_its_leaves() {
    let found = classified(FOREST, RECORDS);
    let expected = [
        // (1 + 0.5) / 2
        ("dns", 0.75),
        // (0.75 + 1) / 2
        ("web", 0.875),
        // (0.75 + 0.5) / 2
        ("web", 0.625),
        // An absent port is -1, which goes left everywhere.
        ("dns", 1.0),
        // A ratio with divisor 0 is absent.
        ("web", 0.625),
    ];
    let found: Vec<_> = found
        .iter()
        .map(|(name, share)| (&**name, *share))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn the_first_of_equal_classes_is_chosen() {
    let model = "turboflow-model 1\nfeature packets\nclass a\nclass b\ntree\nleaf 0.5 0.5\n";
    assert_eq!(classified(model, "packets\n7\n"), [("a".to_owned(), 0.5)]);
}

#[test]
fn a_linear_model_is_a_softmax_of_scores() {
    let model = "turboflow-model 1\nfeature packets\nclass few\nclass many\nlinear\nscore 0 0\nscore -2 1\n";
    let found = classified(model, "packets\n2\n3\n0\n");
    let odds = |score: f64| 1.0 / (1.0 + (-score).exp());
    let expected = [("few", 0.5), ("many", odds(1.0)), ("few", 1.0 - odds(-2.0))];
    for ((name, share), (expected, by_hand)) in found.iter().zip(expected) {
        assert_eq!(name, expected);
        assert!((share - by_hand).abs() < 1e-15, "{share} {by_hand}");
    }
}

/// Softmax is undefined for scores that are not finite.
#[test]
fn the_largest_numbers_have_a_confidence() {
    let model = "turboflow-model 1\nfeature packets\nfeature bytes\nclass a\nclass b\nlinear\n\
        score -3.4e38 3.4e38 -3.4e38\nscore 3.4e38 3.4e38 3.4e38\n";
    let largest = u64::MAX;
    let found = classified(
        model,
        &format!("packets,bytes\n{largest},{largest}\n{largest},\n"),
    );
    assert_eq!(found, [("b".to_owned(), 1.0), ("a".to_owned(), 0.5)]);
}

/// Records are evaluated in blocks, and several at a time; the position of a record in its block
/// must not matter.
#[test]
fn a_record_is_classified_alike_wherever_it_stands() {
    let lines: Vec<&str> = RECORDS.lines().collect();
    let alone = classified(FOREST, RECORDS);
    for count in [1, 7, 8, 9, 127, 128, 129, 400] {
        let rows: Vec<&str> = (0..count).map(|row| lines[1 + row % 5]).collect();
        let found = classified(FOREST, &format!("{}\n{}\n", lines[0], rows.join("\n")));
        assert_eq!(found.len(), count);
        for (row, found) in found.iter().enumerate() {
            assert_eq!(found, &alone[row % 5], "{row} of {count}");
        }
    }
}

#[test]
fn classes_become_columns() {
    let model = Model::parse(FOREST).unwrap();
    let (schema, batch) = records(RECORDS);
    let mut classifier = Classifier::new(&model, &schema).unwrap();
    let mut found = Classified::default();
    classifier.classify(&batch, &mut found);
    let columns = Classifier::columns("application", "confidence");
    let kinds = columns.map(|column| column.kind);
    assert_eq!(kinds, [ColumnKind::Text, ColumnKind::Float]);
    let [names, shares] = classifier.values(found);
    let ValueData::Text { ends, texts } = names.data else {
        panic!("{names:?} are no texts");
    };
    assert_eq!((ends, &*texts), (vec![3, 6, 9, 12, 15], "dnswebwebdnsweb"));
    assert_eq!(
        shares.data,
        ValueData::Float(vec![0.75, 0.875, 0.625, 1.0, 0.625])
    );
}
