# SPDX-License-Identifier: Apache-2.0
"""Writes random records, models that scikit-learn has trained on them, and the predictions of the models.

  oracle.py TRAIN_PY FOLDER

The records are in records.csv. For each model there are NAME.model and NAME.csv, with the predicted class of each
record and its probability.
"""

import importlib.util
import random
import sys
from pathlib import Path

COLUMNS = [
    "src_port", "dst_port", "protocol", "packets", "bytes", "min_length", "max_length", "tcp_flags", "first_ns",
    "last_ns",
]  # fmt: skip
APPLICATIONS = 14
RECORDS = 6000


def train_module(path: str):
    spec = importlib.util.spec_from_file_location("train", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def record(draw: random.Random) -> tuple[dict, str]:
    """A random record and its application. In most records, port and packet size depend on the application."""
    application = draw.randrange(APPLICATIONS)
    is_odd = draw.random() < 0.2
    packets = 1 + int(draw.expovariate(1 / (3 + 5 * application)))
    mean = draw.randrange(40, 1500) if is_odd else 60 + 90 * application + draw.randrange(60)
    first = 1_700_000_000_000_000_000 + draw.randrange(10**12)
    values = {
        "src_port": draw.randrange(1024, 65536),
        "dst_port": draw.randrange(65536) if is_odd else 20 + 37 * (application // 2),
        "protocol": 6 + 11 * (application % 2),
        "packets": packets,
        "bytes": packets * mean,
        "min_length": max(20, mean - draw.randrange(40)),
        "max_length": mean + draw.randrange(40),
        "tcp_flags": "" if application % 2 else draw.choice([2, 0x12, 0x1A, 0x1B]),
        "first_ns": first,
        "last_ns": first + (packets - 1) * draw.randrange(10**9),
    }
    return {name: str(value) for name, value in values.items()}, f"application-{application}"


def main() -> None:
    train, folder = train_module(sys.argv[1]), Path(sys.argv[2])
    draw = random.Random(4)
    drawn = [record(draw) for _ in range(RECORDS)]
    records, labels = [entry[0] for entry in drawn], [entry[1] for entry in drawn]
    lines = [",".join(COLUMNS)] + [",".join(record[name] for name in COLUMNS) for record in records]
    (folder / "records.csv").write_text("\n".join(lines) + "\n")
    two = [str(int(label.split("-")[1]) % 2) for label in labels]
    for name, kind, trees, depth, of in [
        ("tree", "tree", 1, 8, labels),
        ("deep-tree", "tree", 1, 0, labels),
        ("forest", "forest", 10, 12, labels),
        ("deep-forest", "forest", 7, 0, labels),
        ("forest-of-two", "forest", 10, 4, two),
        ("linear", "linear", 0, 0, labels),
        ("linear-of-two", "linear", 0, 0, two),
    ]:
        features = train.LINEAR_FEATURES if kind == "linear" else train.FEATURES
        numbers = train.features_of(records, features)
        # Half of the records are new to the model.
        fitted = train.estimator(kind, trees, depth, 1).fit(numbers[::2], of[::2])
        (folder / f"{name}.model").write_text(train.model_of(fitted, features, name))
        classes, shares = fitted.predict(numbers), fitted.predict_proba(numbers).max(axis=1)
        said = [f"{label},{float(share)!r}" for label, share in zip(classes, shares)]
        (folder / f"{name}.csv").write_text("\n".join(said) + "\n")


if __name__ == "__main__":
    main()
