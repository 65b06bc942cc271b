#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a model for `turboflow classify` from flow records that inspection has labelled, and scores it.

Each file is one capture: CSV of flow records with a column of labels, as `turboflow record --dpi` writes it. The score
is by capture: the model that is tested on a capture was trained without the records of that capture. Needs scikit-learn
1.3 or newer.

  for capture in *.pcap; do turboflow record -r $capture --dpi -w $capture.csv; done
  train.py *.csv -o applications.model
"""

import argparse
import collections
import csv
import math
import random
import sys
from pathlib import Path

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

VERSION = 1
# Stands for a value that a record lacks.
ABSENT = -1.0
FEATURES = [
    "src_port", "dst_port", "protocol", "packets", "bytes", "min_length", "max_length", "tcp_flags",
    "bytes/packets", "last_ns - first_ns",
]  # fmt: skip
# Features for linear models, with logarithms of amounts that span many powers of ten.
LINEAR_FEATURES = [
    "src_port", "dst_port", "protocol", "log(packets)", "log(bytes)", "min_length", "max_length", "tcp_flags",
    "log(bytes/packets)", "log(last_ns - first_ns)",
]  # fmt: skip
# Labels that do not name an application.
NO_LABEL = ("", "Unknown")


def value_of(record: dict, column: str) -> int | float | None:
    """The number in a column, or None if the record has no value there."""
    text = record[column]
    if text == "":
        return None
    return int(text) if text.lstrip("-").isdigit() else float(text)


def feature(record: dict, text: str) -> float:
    """The value of a feature, as `turboflow classify` computes it. ABSENT if it cannot be computed."""
    inner = text.strip()
    is_logarithm = inner.startswith("log(") and inner.endswith(")")
    inner = inner[4:-1] if is_logarithm else inner
    for sign in "-/":
        left, found, right = inner.partition(sign)
        if not found:
            continue
        left, right = value_of(record, left.strip()), value_of(record, right.strip())
        if left is None or right is None or (sign == "/" and right == 0):
            return ABSENT
        # Subtract integers before rounding: timestamps have more digits than a float.
        number = float(left - right) if sign == "-" else float(left) / float(right)
        break
    else:
        number = value_of(record, inner.strip())
        if number is None:
            return ABSENT
        number = float(number)
    if is_logarithm:
        number = math.log1p(number) if number > -1 else math.nan
    return ABSENT if math.isnan(number) else number


def features_of(records: list[dict], features: list[str]) -> np.ndarray:
    rows = [[feature(record, text) for text in features] for record in records]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(features))


def label_of(record: dict, column: str, part: str) -> str:
    protocol, _, service = record[column].partition(".")
    return {"whole": record[column], "protocol": protocol, "service": service or protocol}[part]


def read(path: Path) -> list[dict]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def estimator(kind: str, trees: int, depth: int, seed: int):
    """An untrained estimator of a kind that `turboflow classify` can evaluate."""
    if kind == "linear":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
    limits = {"max_depth": depth or None, "min_samples_leaf": 2, "random_state": seed}
    if kind == "tree":
        return DecisionTreeClassifier(**limits)
    return RandomForestClassifier(n_estimators=trees, n_jobs=1, **limits)


def tree_of(tree) -> list[str]:
    """The lines of the model file for a tree of scikit-learn. repr() writes floats without loss."""
    lines = ["tree"]
    for node in range(tree.node_count):
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left < 0:
            lines.append("leaf " + numbers_of(tree.value[node][0]))
        else:
            lines.append(f"node {int(tree.feature[node])} {float(tree.threshold[node])!r} {left} {right}")
    return lines


def linear_of(pipeline) -> list[str]:
    """The lines of the model file for a linear model, with the scaler folded into weights and biases."""
    scaler, model = pipeline[0], pipeline[-1]
    weights, bias = model.coef_ / scaler.scale_, model.intercept_.copy()
    bias -= weights @ scaler.mean_
    if len(model.classes_) == 2:  # one score, of the second class
        weights, bias = np.vstack([np.zeros_like(weights), weights]), np.concatenate([[0.0], bias])
    return ["linear", *(f"score {numbers_of([b, *w])}" for b, w in zip(bias, weights))]


def numbers_of(numbers) -> str:
    return " ".join(repr(float(number)) for number in numbers)


def model_of(fitted, features: list[str], note: str) -> str:
    """The text of the model file for a fitted estimator."""
    head = [f"turboflow-model {VERSION}", f"note {note}", f"absent {ABSENT!r}"]
    head += [f"feature {text}" for text in features] + [f"class {name}" for name in fitted.classes_]
    if hasattr(fitted, "estimators_"):
        body = [line for tree in fitted.estimators_ for line in tree_of(tree.tree_)]
    elif hasattr(fitted, "tree_"):
        body = tree_of(fitted.tree_)
    else:
        body = linear_of(fitted)
    return "\n".join(head + body) + "\n"


def folds_of(captures: list[str], count: int, seed: int) -> list[set[str]]:
    names = sorted(set(captures))
    random.Random(seed).shuffle(names)
    return [set(names[fold::count]) for fold in range(count)]


def score(make, numbers, labels, captures, args) -> tuple[float, float]:
    """Accuracy and macro F1 over all records, each predicted by a model that was not trained on its capture."""
    labels, captures = np.array(labels), np.array(captures)
    foretold = np.empty_like(labels)
    for fold in folds_of(list(captures), args.folds, args.seed):
        is_test = np.isin(captures, list(fold))
        if is_test.all() or not is_test.any():
            sys.exit(f"train.py: {len(set(captures))} captures are too few for {args.folds} folds")
        fitted = make().fit(numbers[~is_test], labels[~is_test])
        foretold[is_test] = fitted.predict(numbers[is_test])
    return accuracy_score(labels, foretold), f1_score(labels, foretold, average="macro", zero_division=0)


def labelled(args) -> tuple[list[dict], list[str], list[str]]:
    """Records, their labels and their captures.

    Takes at most `args.most` random records of each capture, and only applications that are in at least
    `args.captures` of them.
    """
    chosen = random.Random(args.seed)
    found = []
    for path in args.files:
        records = read(path)
        if records and args.label not in records[0]:
            sys.exit(f"train.py: {path}: no column {args.label}: meter with --dpi, or name it with --label")
        named = [(record, label_of(record, args.label, args.part)) for record in records]
        named = [(record, label) for record, label in named if label not in NO_LABEL]
        chosen.shuffle(named)
        found += [(record, label, str(path)) for record, label in named[: args.most]]
    seen_in = collections.defaultdict(set)
    for _, label, capture in found:
        seen_in[label].add(capture)
    kept = [entry for entry in found if len(seen_in[entry[1]]) >= args.captures]
    if len({label for _, label, _ in kept}) < 2:
        sys.exit(f"train.py: fewer than two applications are in {args.captures} captures: give more, or --captures 1")
    return [list(column) for column in zip(*kept)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", help="CSV of flow records, one file for each capture")
    parser.add_argument("-o", "--output", type=Path, help="file for the model; without it, only the score is computed")
    parser.add_argument("--kind", choices=["forest", "tree", "linear"], default="forest")
    parser.add_argument("--features", help="features, separated by commas; default: those of the default definition")
    parser.add_argument("--label", default="application", help="the column of labels")
    parser.add_argument("--part", choices=["protocol", "service", "whole"], default="protocol",
                        help="which part of a label such as TLS.Google: TLS, Google, or both")  # fmt: skip
    parser.add_argument("--captures", type=int, default=4, help="leave out applications that occur in fewer captures")
    parser.add_argument("--most", type=int, default=40, help="maximum number of records of a capture")
    parser.add_argument("--trees", type=int, default=10)
    parser.add_argument("--depth", type=int, default=12, help="maximum number of levels of a tree; 0: no limit")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    usual = LINEAR_FEATURES if args.kind == "linear" else FEATURES
    features = [text.strip() for text in args.features.split(",")] if args.features else usual
    records, labels, captures = labelled(args)
    numbers = features_of(records, features)

    def make():
        return estimator(args.kind, args.trees, args.depth, args.seed)

    accuracy, f1 = score(make, numbers, labels, captures, args)
    baseline, _ = score(lambda: DummyClassifier(strategy="most_frequent"), numbers, labels, captures, args)
    said = (
        f"{args.kind}: {len(labels)} records of {len(set(captures))} captures, {len(set(labels))} applications; "
        f"capture-wise accuracy {accuracy:.2f}, macro F1 {f1:.2f}; always the most frequent: {baseline:.2f}"
    )
    print(said)
    if args.output:
        model = model_of(make().fit(numbers, labels), features, said)
        args.output.write_text(model)


if __name__ == "__main__":
    main()
