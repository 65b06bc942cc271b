// SPDX-License-Identifier: Apache-2.0
//! The cost of classifying flow records: from batches of columns to a class and a confidence for
//! each record.
//!
//! | design | what |
//! |---|---|
//! | `tree` | one tree |
//! | `forest_10` | ten trees, whose leaves are averaged |
//! | `linear` | a linear model, the paper's kind (Dlib) |
//!
//! The models have 14 classes and ten features of the default definition, among them a ratio and a
//! difference. The trees are grown on records like those that they classify, ten levels deep. So
//! they are as large as trained trees, and walks through them are as long.
//!
//! No feature is a list: models that use list columns are refused, so there is nothing to measure.

use std::hint::black_box;

use turboflow_classify::{Classified, Classifier, Model};
use turboflow_record::{Column, ColumnKind, FlowBatch, Schema, Value};
use turboflow_workload::random::Random;

use crate::report::{Measured, in_turn, median};
use crate::{Options, Row, Timer};

/// Records per batch, as file readers deliver them.
const BATCH: u64 = 8_192;
/// Batches classified in turn. Together they exceed L2.
const BATCHES: u64 = 8;
const CLASSES: u64 = 14;
const DEPTH: usize = 10;
/// Records that a tree is grown on.
const GROWN_ON: usize = 4_000;

const COLUMNS: [&str; 10] = [
    "src_port",
    "dst_port",
    "protocol",
    "packets",
    "bytes",
    "min_length",
    "max_length",
    "tcp_flags",
    "first_ns",
    "last_ns",
];

/// The default features of `contrib/classifier/train.py`.
const FEATURES: [&str; 10] = [
    "src_port",
    "dst_port",
    "protocol",
    "packets",
    "bytes",
    "min_length",
    "max_length",
    "tcp_flags",
    "bytes/packets",
    "last_ns - first_ns",
];

pub(crate) fn run(options: &Options, row: &mut dyn FnMut(Row)) {
    let models = [
        ("tree", forest(1)),
        ("forest_10", forest(10)),
        ("linear", linear()),
    ]
    .map(|(design, text)| (design, Model::parse(&text).expect("the text is a model")));
    let designs = models.iter().map(|(design, model)| {
        let run: Box<dyn Measured + '_> = Box::new(Run::new(design, model));
        run
    });
    in_turn(designs.collect(), options, row);
}

fn schema() -> Schema {
    let columns = COLUMNS.iter().map(|name| Column {
        name: (*name).to_owned(),
        kind: match name.ends_with("_ns") {
            true => ColumnKind::TimestampNs,
            false => ColumnKind::Unsigned { bits: 64 },
        },
        nullable: false,
    });
    columns.collect()
}

/// A record; most flows are small, and some are large.
fn record(random: &mut Random) -> [u64; COLUMNS.len()] {
    const PORTS: [u64; 8] = [22, 25, 53, 80, 123, 443, 993, 8080];
    let packets = 1 + (1 << random.below(12)) * random.below(3);
    let (smallest, spread) = (40 + random.below(500), random.below(900));
    let first = 1_700_000_000_000_000_000 + random.below(1 << 40);
    let listed = PORTS[random.below(8) as usize];
    let port = [listed, listed, random.below(65_536)][random.below(3) as usize];
    [
        1_024 + random.below(64_000),
        port,
        6 + 11 * random.below(2),
        packets,
        packets * (smallest + spread / 2),
        smallest,
        smallest + spread,
        random.below(64),
        first,
        first + packets * random.below(1 << 30),
    ]
}

/// The features of a record, on which trees are grown.
fn features(record: &[u64; COLUMNS.len()]) -> [f64; FEATURES.len()] {
    let mut features = [0.0; FEATURES.len()];
    for (feature, number) in features.iter_mut().zip(record) {
        *feature = *number as f64;
    }
    features[8] = record[4] as f64 / record[3] as f64;
    features[9] = (record[9] - record[8]) as f64;
    features
}

fn head() -> String {
    let features = FEATURES.map(|name| format!("feature {name}\n")).concat();
    let classes = (0..CLASSES).map(|class| format!("class application-{class}\n"));
    format!(
        "turboflow-model 1\n{features}{}",
        classes.collect::<String>()
    )
}

/// Trees that split records at the values of randomly chosen ones, like extremely randomised trees.
fn forest(trees: u64) -> String {
    let mut text = head();
    for tree in 0..trees {
        let mut random = Random::new(100 + tree);
        let records = (0..GROWN_ON).map(|_| features(&record(&mut random)));
        let mut lines = Vec::new();
        grow(records.collect(), DEPTH, &mut random, &mut lines);
        text.push_str("tree\n");
        text.push_str(&lines.concat());
    }
    text
}

/// Appends the lines of a tree that is grown on these records.
fn grow(
    records: Vec<[f64; FEATURES.len()]>,
    depth: usize,
    random: &mut Random,
    lines: &mut Vec<String>,
) {
    let node = lines.len();
    let feature = random.below(FEATURES.len() as u64) as usize;
    let threshold = match records.is_empty() {
        true => 0.0,
        false => records[random.below(records.len() as u64) as usize][feature],
    };
    let (left, right): (Vec<_>, Vec<_>) = records
        .iter()
        .partition(|record| record[feature] <= threshold);
    if depth == 0 || left.is_empty() || right.is_empty() {
        let class = random.below(CLASSES);
        let share = |its| match its == class {
            true => " 0.8",
            false if (its + 1) % CLASSES == class => " 0.2",
            false => " 0",
        };
        let shares: String = (0..CLASSES).map(share).collect();
        lines.push(format!("leaf{shares}\n"));
        return;
    }
    lines.push(String::new());
    let first = lines.len();
    grow(left, depth - 1, random, lines);
    let second = lines.len();
    grow(right, depth - 1, random, lines);
    lines[node] = format!("node {feature} {threshold} {first} {second}\n");
}

fn linear() -> String {
    let mut random = Random::new(7);
    let mut number = || random.below(2_000) as f64 / 1e6 - 1e-3;
    let mut text = head() + "linear\n";
    for _ in 0..CLASSES {
        let numbers = (0..=FEATURES.len()).map(|_| format!(" {}", number()));
        text.push_str(&format!("score{}\n", numbers.collect::<String>()));
    }
    text
}

/// A model, the batches, and the time it took to classify them.
struct Run<'a> {
    design: &'static str,
    classifier: Classifier<'a>,
    batches: Vec<FlowBatch>,
    found: Classified,
    rounds: Vec<Row>,
}

impl<'a> Run<'a> {
    fn new(design: &'static str, model: &'a Model) -> Self {
        let schema = schema();
        let mut random = Random::new(1);
        let batches = (0..BATCHES).map(|_| {
            let mut batch = FlowBatch::with_room(&schema, BATCH as usize);
            for _ in 0..BATCH {
                batch.push_row(&record(&mut random).map(Value::Unsigned));
            }
            batch
        });
        Self {
            design,
            classifier: Classifier::new(model, &schema).expect("the records have the features"),
            batches: batches.collect(),
            found: Classified::default(),
            rounds: Vec::new(),
        }
    }
}

impl Measured for Run<'_> {
    fn round(&mut self, items: u64) {
        let batches = items.div_ceil(BATCH);
        let mut timer = Timer::default();
        for number in 0..batches {
            let batch = &self.batches[(number % BATCHES) as usize];
            self.found.classes.clear();
            self.found.confidence.clear();
            timer.time(|| self.classifier.classify(batch, &mut self.found));
            black_box(&self.found);
        }
        let (flows, took) = (BATCH * BATCHES, timer.total());
        let items = batches * BATCH;
        self.rounds.push(Row::new(
            "classify",
            self.design,
            flows,
            "uniform",
            items,
            took,
        ));
    }

    fn finish(self: Box<Self>) -> Row {
        median(self.rounds)
    }
}
