// SPDX-License-Identifier: Apache-2.0
//! Invalid model files: each is refused with its line and what is expected there.

use turboflow_classify::{Classifier, Model};

use crate::support::records;

const HEAD: &str = "turboflow-model 1\nfeature packets\nclass a\nclass b\n";

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let body = |lines: &str| format!("{HEAD}{lines}");
    let cases = [
        (String::new(), "line 1: it is not \"turboflow-model 1\""),
        ("{}\n".to_owned(), "train.py writes models"),
        (
            "turboflow-model 2\n".to_owned(),
            "line 1: this program reads version 1, not 2",
        ),
        (HEAD.to_owned(), "line 4: the file ends here"),
        (
            "turboflow-model 1\ncolour x\ntree\n".to_owned(),
            "line 2: \"colour\" is not part",
        ),
        (
            "turboflow-model 1\nfeature a b\ntree\n".to_owned(),
            "line 2: write a column",
        ),
        (
            "turboflow-model 1\nclass a\ntree\nleaf 1\n".to_owned(),
            "line 3: 0 lines",
        ),
        (
            body("class a\ntree\nleaf 1 0\n"),
            "line 5: \"a\" is empty, or given twice",
        ),
        (
            body("absent x\n tree\nleaf 1 0\n"),
            "line 5: \"x\" is not a number",
        ),
        (body("tree\n"), "line 5: a tree has one or more lines"),
        (
            body("tree\nleaf 1\n"),
            "line 6: 1 numbers follow \"leaf\": write 2",
        ),
        (
            body("tree\nleaf 1 nan\n"),
            "line 6: \"nan\" is not a number",
        ),
        (body("tree\nleaf 1 2\n"), "line 6: 2 is not a share"),
        (
            body("tree\nnode 1 0 1 2\nleaf 1 0\nleaf 0 1\n"),
            "line 6: a node has a feature",
        ),
        (
            body("tree\nnode 0 0 1 9\nleaf 1 0\n"),
            "line 6: node 9 cannot be a child",
        ),
        (
            body("tree\nnode 0 0 0 1\nleaf 1 0\n"),
            "line 6: node 0 cannot be a child",
        ),
        (
            body("tree\nnode 0 0 1 1\nleaf 1 0\n"),
            "line 6: node 1 cannot be a child",
        ),
        (
            body("tree\nnode 0 0 -1 1.5\nleaf 1 0\n"),
            "line 6: a node has",
        ),
        (
            body("tree\nnode -1 0 1 2\nleaf 1 0\nleaf 0 1\n"),
            "line 6: a node has a feature from 0 to 0",
        ),
        (
            body("tree\nnode 0 0 -1 2\nleaf 1 0\nleaf 0 1\n"),
            "line 6: a node has a feature from 0 to 0, a threshold, and two nodes",
        ),
        (
            body("tree\nnode 0 1e39 1 2\nleaf 1 0\nleaf 0 1\n"),
            "line 6: 1e39 is too large: write a number from -3.4e38 to 3.4e38",
        ),
        (
            body("tree\nnode 0 -inf 1 2\nleaf 1 0\nleaf 0 1\n"),
            "line 6: -inf is too large",
        ),
        (
            body("absent -1e300\ntree\nleaf 1 0\n"),
            "line 5: -1e300 is too large",
        ),
        (
            body("linear\nscore 1 1e300\nscore 1 1\n"),
            "line 6: 1e300 is too large",
        ),
        (
            body("linear\nscore 1 1\nscore 1e999 1\n"),
            "line 7: 1e999 is too large",
        ),
        (
            body("tree\nleaf 1 0\nscore 1 1\n"),
            "line 7: \"score\" is not part of a tree",
        ),
        (
            body("linear\nscore 1 1\n"),
            "line 5: 1 lines follow this one",
        ),
        (body("linear\nscore 1 1\nscore 1\n"), "line 7: 1 numbers"),
        (
            body("linear\nscore 1 1\nleaf 1 1\n"),
            "line 7: \"leaf\" is not part",
        ),
    ];
    for (text, expected) in cases {
        let error = Model::parse(&text).expect_err(&text).to_string();
        assert!(error.contains(expected), "{text:?}\n{error}");
    }
}

#[test]
fn records_without_a_feature_are_refused() {
    let model = Model::parse(&format!("{HEAD}tree\nleaf 1 0\n")).unwrap();
    let (schema, _) = records("bytes\n1\n");
    let Err(error) = Classifier::new(&model, &schema) else {
        panic!("there are no packets");
    };
    assert!(
        error.to_string().contains("no column \"packets\""),
        "{error}"
    );
}

/// A tree that leads back to its root would never end.
#[test]
fn random_changes_of_a_model_are_refused_or_end() {
    let text = format!("{HEAD}tree\nnode 0 1.5 1 2\nleaf 1 0\nnode 0 7 3 4\nleaf 0 1\nleaf 1 0\n");
    let (schema, batch) = records("packets\n1\n2\n9\n");
    let mut accepted = 0;
    for at in 0..text.len() {
        for with in ["", "0", "9", " ", "-", "\n"] {
            let mut changed = text.clone();
            changed.replace_range(at..=at, with);
            let Ok(model) = Model::parse(&changed) else {
                continue;
            };
            let Ok(mut classifier) = Classifier::new(&model, &schema) else {
                continue;
            };
            let mut found = turboflow_classify::Classified::default();
            classifier.classify(&batch, &mut found);
            assert_eq!(found.classes.len(), 3);
            accepted += 1;
        }
    }
    assert!(accepted > 10, "{accepted}");
}
