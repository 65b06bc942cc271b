// SPDX-License-Identifier: Apache-2.0
//! Decision trees in flat arrays, evaluated on blocks of records.
//!
//! The two children of a node are adjacent, and a leaf is its own child, so a step is a comparison
//! and an addition. Several records walk through a tree at the same time: each step waits for
//! memory, and the waits of different records overlap. A leaf stores only the classes that have a
//! share in it, which are few.

use crate::ModelError;
use crate::lines::Line;

/// Number of records that walk through a tree at the same time.
const LANES: usize = 8;
/// Number of steps between checks whether all records have reached leaves.
const STEPS: usize = 4;

/// One or more trees, whose leaves hold the shares of classes.
#[derive(Clone, Debug)]
pub(crate) struct Forest {
    trees: Vec<Tree>,
    /// For each leaf, the end of its shares in `shares`.
    ends: Vec<u32>,
    /// The nonzero shares of all leaves, as pairs of class and share.
    shares: Vec<(u32, f64)>,
    classes: usize,
}

#[derive(Clone, Debug, Default)]
struct Tree {
    nodes: Vec<Node>,
    /// For each node that is a leaf, its number.
    leaf_of: Vec<u32>,
}

/// A node, or a leaf, which is its own child.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// A record goes left if its feature is at most this.
    threshold: f32,
    /// The feature, and in the low bits the index of the left child. The right child is the next
    /// node.
    feature_and_left: u32,
}

/// Number of bits for the index of a node in its tree. The remaining bits hold the feature.
const PLACE_BITS: u32 = 20;
/// Maximum number of nodes in a tree.
const NODES_MAX: usize = 1 << PLACE_BITS;
/// Maximum number of shares in a forest.
const SHARES_MAX: usize = 1 << 28;

impl Node {
    const fn new(threshold: f32, feature: u32, left: usize) -> Self {
        Self {
            threshold,
            feature_and_left: feature << PLACE_BITS | left as u32,
        }
    }

    #[inline(always)]
    const fn feature(self) -> usize {
        (self.feature_and_left >> PLACE_BITS) as usize
    }

    #[inline(always)]
    const fn left(self) -> u32 {
        self.feature_and_left & (NODES_MAX as u32 - 1)
    }
}

/// A line in the description of a tree: a node or a leaf.
enum Entry {
    Node {
        feature: u32,
        threshold: f32,
        left: usize,
        right: usize,
    },
    Leaf(u32),
}

impl Forest {
    /// Reads the trees from these lines.
    pub(crate) fn read(
        lines: &[Line<'_>],
        features: usize,
        classes: usize,
    ) -> Result<Self, ModelError> {
        let mut forest = Self {
            trees: Vec::new(),
            ends: Vec::new(),
            shares: Vec::new(),
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
            if entries.len() > NODES_MAX || forest.shares.len() > SHARES_MAX {
                return Err(head.error("the trees up to here are too large for this program"));
            }
            forest.trees.push(Tree::of(&entries));
        }
        Ok(forest)
    }

    fn entry(&mut self, line: &Line<'_>, features: usize) -> Result<Entry, ModelError> {
        match line.word {
            "leaf" => {
                let shares = line.numbers(self.classes, "the share of each class")?;
                if let Some(share) = shares.iter().find(|share| !(0.0..=1.0).contains(*share)) {
                    return Err(line.error(format!("{share} is not a share: write 0 to 1")));
                }
                let shares = (0..).zip(shares).filter(|(_, share)| *share > 0.0);
                self.shares.extend(shares);
                self.ends.push(self.shares.len() as u32);
                Ok(Entry::Leaf(self.ends.len() as u32 - 1))
            }
            "node" => {
                let numbers = line.numbers(4, "feature, threshold, left and right")?;
                let [feature, left, right] = [0, 2, 3].map(|place| numbers[place]);
                // A conversion would turn -1 into feature 0.
                let is_place = |number: f64| number >= 0.0 && number.fract() == 0.0;
                let place = |number: f64| is_place(number).then_some(number as usize);
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
                "{other:?} is not part of a tree: write node or leaf"
            ))),
        }
    }

    /// Number of trees, by which the sums of shares are divided.
    pub(crate) const fn trees(&self) -> usize {
        self.trees.len()
    }

    /// Adds up the shares of the leaves that records reach, class by class for each record.
    /// `numbers` has `width` features per record.
    pub(crate) fn evaluate(&self, numbers: &[f32], width: usize, sums: &mut [f64]) {
        sums.fill(0.0);
        for tree in &self.trees {
            let lanes = numbers.chunks_exact(width * LANES);
            let rest = lanes.remainder();
            let mut sums = sums.chunks_exact_mut(self.classes);
            for block in lanes {
                let leaves = tree.leaves::<LANES>(block, width);
                for (leaf, sums) in leaves.into_iter().zip(&mut sums) {
                    self.add_shares(leaf, sums);
                }
            }
            for (record, sums) in rest.chunks_exact(width).zip(&mut sums) {
                let [leaf] = tree.leaves::<1>(record, width);
                self.add_shares(leaf, sums);
            }
        }
    }

    #[inline(always)]
    fn add_shares(&self, leaf: u32, sums: &mut [f64]) {
        let leaf = leaf as usize;
        let start = match leaf {
            0 => 0,
            _ => self.ends[leaf - 1],
        };
        // Added in the order of the trees, so that the sum equals that of scikit-learn bit for bit.
        for (class, share) in &self.shares[start as usize..self.ends[leaf] as usize] {
            sums[*class as usize] += share;
        }
    }
}

impl Tree {
    /// Lays out a checked tree, level by level.
    fn of(entries: &[Entry]) -> Self {
        let mut tree = Self::default();
        tree.room(1);
        let mut waiting = std::collections::VecDeque::from([(0, 0)]);
        while let Some((from, to)) = waiting.pop_front() {
            match entries[from] {
                Entry::Leaf(leaf) => {
                    tree.leaf_of[to] = leaf;
                    tree.nodes[to] = Node::new(f32::INFINITY, 0, to);
                }
                Entry::Node {
                    feature,
                    threshold,
                    left,
                    right,
                } => {
                    let children = tree.nodes.len();
                    tree.room(2);
                    tree.nodes[to] = Node::new(threshold, feature, children);
                    waiting.extend([(left, children), (right, children + 1)]);
                }
            }
        }
        tree
    }

    fn room(&mut self, nodes: usize) {
        let leaf = Node::new(f32::INFINITY, 0, 0);
        self.nodes.resize(self.nodes.len() + nodes, leaf);
        self.leaf_of.resize(self.nodes.len(), 0);
    }

    /// The leaves that `N` records reach.
    #[inline(always)]
    fn leaves<const N: usize>(&self, numbers: &[f32], width: usize) -> [u32; N] {
        let mut at = [0_u32; N];
        loop {
            let mut moved = 0;
            for _ in 0..STEPS {
                moved = 0;
                for (lane, at) in at.iter_mut().enumerate() {
                    let node = self.nodes[*at as usize];
                    let number = numbers[lane * width + node.feature()];
                    let next = node.left() + u32::from(number > node.threshold);
                    moved |= next ^ *at;
                    *at = next;
                }
            }
            if moved == 0 {
                return at.map(|node| self.leaf_of[node as usize]);
            }
        }
    }
}

/// The largest 32-bit float that is at most `threshold`. Thresholds have 64 bits, but numbers of
/// records have 32, as in scikit-learn; comparing with this float gives the same result.
fn at_most(threshold: f64) -> f32 {
    let near = threshold as f32;
    match f64::from(near) > threshold {
        true => near.next_down(),
        false => near,
    }
}

/// Checks that children come after their parents, so that every walk ends, and that each has one
/// parent, so that a tree takes no more memory than its lines.
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
                     after it in this tree and has no other parent"
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
