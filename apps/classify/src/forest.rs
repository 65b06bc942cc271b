// SPDX-License-Identifier: Apache-2.0
//! Trees in flat arrays, evaluated over blocks of records.
//!
//! The two children of a node lie side by side, and a leaf is its own child, so a step is a
//! comparison and an addition. Several records walk through a tree at a time: a step waits for
//! memory, and those of different records do not wait for each other.

use crate::ModelError;
use crate::lines::Line;

/// Records that walk through a tree at a time.
const LANES: usize = 8;

/// One tree or several, whose leaves hold the shares of classes.
#[derive(Clone, Debug)]
pub(crate) struct Forest {
    /// The nodes of all trees.
    nodes: Vec<Node>,
    /// The leaf of a node, by its place in `shares` divided by the number of classes.
    leaf_of: Vec<u32>,
    /// The shares of all leaves.
    shares: Vec<f64>,
    /// The roots of the trees.
    roots: Vec<u32>,
    classes: usize,
}

/// A node, or a leaf that leads to itself.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// A record goes left where its feature is at most this.
    threshold: f32,
    feature: u32,
    /// The left child; the right one is behind it.
    left: u32,
}

/// A line of a tree: a node, or a leaf.
enum Entry {
    Node {
        feature: u32,
        threshold: f32,
        left: usize,
        right: usize,
    },
    Leaf(u32),
}

/// Most numbers of a forest's leaves, and most nodes: their places have 32 bits.
const PLACES_MAX: usize = 1 << 28;

impl Forest {
    /// Reads the trees in these lines.
    pub(crate) fn read(
        lines: &[Line<'_>],
        features: usize,
        classes: usize,
    ) -> Result<Self, ModelError> {
        let mut forest = Self {
            nodes: Vec::new(),
            leaf_of: Vec::new(),
            shares: Vec::new(),
            roots: Vec::new(),
            classes,
        };
        for tree in lines.chunk_by(|_, next| next.word != "tree") {
            let (head, tree) = (tree[0], &tree[1..]);
            if tree.is_empty() {
                return Err(head.error("a tree has one or more lines: write node and leaf"));
            }
            let mut entries = Vec::with_capacity(tree.len());
            for line in tree {
                entries.push(forest.entry(line, features)?);
            }
            check_children(tree, &entries)?;
            forest.add(&entries);
            if forest.nodes.len().max(forest.shares.len()) > PLACES_MAX {
                return Err(head.error("the trees up to here are too large for this program"));
            }
        }
        Ok(forest)
    }

    fn entry(&mut self, line: &Line<'_>, features: usize) -> Result<Entry, ModelError> {
        match line.word {
            "leaf" => {
                let shares = line.numbers(self.classes, "the share of each class")?;
                if let Some(share) = shares.iter().find(|share| !(0.0..=1.0).contains(*share)) {
                    return Err(line.error(format!("{share} is no share: write 0 to 1")));
                }
                let leaf = self.shares.len() / self.classes;
                self.shares.extend(shares);
                Ok(Entry::Leaf(leaf as u32))
            }
            "node" => {
                let numbers = line.numbers(4, "feature, threshold, left and right")?;
                let [feature, left, right] = [0, 2, 3].map(|place| numbers[place]);
                let place = |number: f64| (number.fract() == 0.0).then_some(number as usize);
                match (place(feature), place(left), place(right)) {
                    (Some(feature), Some(left), Some(right)) if feature < features => {
                        Ok(Entry::Node {
                            feature: feature as u32,
                            threshold: at_most(numbers[1]),
                            left,
                            right,
                        })
                    }
                    _ => Err(line.error(format!(
                        "a node has a feature from 0 to {}, a threshold, and two nodes",
                        features - 1
                    ))),
                }
            }
            other => Err(line.error(format!(
                "{other:?} is no part of a tree: write node or leaf"
            ))),
        }
    }

    /// Adds a tree that was checked, level by level.
    fn add(&mut self, entries: &[Entry]) {
        let root = self.nodes.len();
        self.roots.push(root as u32);
        self.room(1);
        let mut waiting = std::collections::VecDeque::from([(0, root)]);
        while let Some((from, to)) = waiting.pop_front() {
            match entries[from] {
                Entry::Leaf(leaf) => {
                    self.leaf_of[to] = leaf;
                    self.nodes[to].left = to as u32;
                }
                Entry::Node {
                    feature,
                    threshold,
                    left,
                    right,
                } => {
                    let children = self.nodes.len();
                    self.room(2);
                    self.nodes[to] = Node {
                        threshold,
                        feature,
                        left: children as u32,
                    };
                    waiting.extend([(left, children), (right, children + 1)]);
                }
            }
        }
    }

    fn room(&mut self, nodes: usize) {
        let leaf = Node {
            threshold: f32::INFINITY,
            feature: 0,
            left: 0,
        };
        self.nodes.resize(self.nodes.len() + nodes, leaf);
        self.leaf_of.resize(self.nodes.len(), 0);
    }

    /// Adds the shares of the leaves that records reach to `sums`, and divides them by the number
    /// of trees. `numbers` has `width` features a record; what is behind the last record of both
    /// is not looked at.
    pub(crate) fn evaluate(&self, numbers: &[f32], width: usize, sums: &mut [f64]) {
        sums.fill(0.0);
        for &root in &self.roots {
            let lanes = numbers.chunks_exact(width * LANES);
            let rest = lanes.remainder();
            let mut sums = sums.chunks_exact_mut(self.classes);
            for block in lanes {
                for leaf in self.leaves::<LANES>(root, block, width) {
                    self.add_shares(leaf, sums.next());
                }
            }
            for record in rest.chunks_exact(width) {
                for leaf in self.leaves::<1>(root, record, width) {
                    self.add_shares(leaf, sums.next());
                }
            }
        }
        let trees = self.roots.len() as f64;
        if self.roots.len() > 1 {
            sums.iter_mut().for_each(|sum| *sum /= trees);
        }
    }

    /// The leaves that `N` records reach.
    #[inline(always)]
    fn leaves<const N: usize>(&self, root: u32, numbers: &[f32], width: usize) -> [u32; N] {
        let mut at = [root; N];
        loop {
            let mut moved = 0;
            for (lane, at) in at.iter_mut().enumerate() {
                let node = self.nodes[*at as usize];
                let number = numbers[lane * width + node.feature as usize];
                let next = node.left + u32::from(number > node.threshold);
                moved |= next ^ *at;
                *at = next;
            }
            if moved == 0 {
                return at.map(|node| self.leaf_of[node as usize]);
            }
        }
    }

    #[inline(always)]
    fn add_shares(&self, leaf: u32, sums: Option<&mut [f64]>) {
        let start = leaf as usize * self.classes;
        let shares = &self.shares[start..start + self.classes];
        for (sum, share) in sums.into_iter().flatten().zip(shares) {
            *sum += share;
        }
    }
}

/// The largest number of 32 bits that is at most `threshold`: numbers of records have 32 bits, as
/// in scikit-learn, and thresholds 64, and the comparison stays the same.
fn at_most(threshold: f64) -> f32 {
    let near = threshold as f32;
    match f64::from(near) > threshold {
        true => near.next_down(),
        false => near,
    }
}

/// Children come behind their parents, so that every walk ends, and have one, so that a tree takes
/// no more room than its lines.
fn check_children(lines: &[Line<'_>], entries: &[Entry]) -> Result<(), ModelError> {
    let mut has_parent = vec![false; entries.len()];
    for (node, entry) in entries.iter().enumerate() {
        let Entry::Node { left, right, .. } = entry else {
            continue;
        };
        for &child in [left, right] {
            if child <= node || child >= entries.len() || has_parent[child] {
                return Err(lines[node].error(format!(
                    "node {child} cannot be a child of this node, {node}: write one that comes \
                     behind it in this tree and has no other parent"
                )));
            }
            has_parent[child] = true;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::at_most;

    proptest! {
        #[test]
        fn a_threshold_of_32_bits_decides_as_that_of_64(
            threshold in prop::num::f64::NORMAL | prop::num::f64::ZERO,
            steps in -2_i32..=2,
        ) {
            // Numbers right beside the threshold, and the one that it rounds to.
            let mut number = threshold as f32;
            for _ in 0..steps.abs() {
                number = if steps < 0 { number.next_down() } else { number.next_up() };
            }
            prop_assert_eq!(number <= at_most(threshold), f64::from(number) <= threshold);
        }
    }
}
