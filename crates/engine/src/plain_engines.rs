// SPDX-License-Identifier: Apache-2.0
//! Packet engines whose type is known at run time.

use std::any::Any;
use std::fmt;

use turboflow_merge::{KeyHasher, Plan};
use turboflow_record::{WORDS_V4, WORDS_V6};

use crate::{PacketEngine, PacketEngines};

/// A packet engine of any type.
pub type BoxedEngine<const K: usize, const N: usize> = Box<dyn PacketEngine<K, N>>;

/// A kind of [`PacketEngine`] for records of the default definition, as a trait object. A run can
/// use such an engine without being compiled for it. Each call handles a batch, so dynamic dispatch
/// costs nothing per packet.
pub trait PlainEngines: fmt::Debug + Send + Sync {
    /// Creates an empty table for IPv4. See [`PacketEngines::open`].
    fn open_v4(
        &self,
        shards: usize,
        evict_after: u8,
        plan: Plan,
        hasher: KeyHasher,
    ) -> BoxedEngine<WORDS_V4, 0>;

    /// Creates an empty table for IPv6.
    fn open_v6(
        &self,
        shards: usize,
        evict_after: u8,
        plan: Plan,
        hasher: KeyHasher,
    ) -> BoxedEngine<WORDS_V6, 0>;

    /// Memory of one table with keys of `key_words` words, in bytes.
    fn table_bytes(&self, shards: usize, key_words: usize) -> usize;
}

impl<F> PlainEngines for F
where
    F: PacketEngines + fmt::Debug + Sync,
    F::Engine<WORDS_V4, 0>: 'static,
    F::Engine<WORDS_V6, 0>: 'static,
{
    fn open_v4(
        &self,
        shards: usize,
        evict_after: u8,
        plan: Plan,
        hasher: KeyHasher,
    ) -> BoxedEngine<WORDS_V4, 0> {
        Box::new(self.open::<WORDS_V4, 0>(shards, evict_after, plan, hasher))
    }

    fn open_v6(
        &self,
        shards: usize,
        evict_after: u8,
        plan: Plan,
        hasher: KeyHasher,
    ) -> BoxedEngine<WORDS_V6, 0> {
        Box::new(self.open::<WORDS_V6, 0>(shards, evict_after, plan, hasher))
    }

    fn table_bytes(&self, shards: usize, key_words: usize) -> usize {
        match key_words {
            WORDS_V4 => PacketEngines::size_bytes::<WORDS_V4, 0>(self, shards),
            _ => PacketEngines::size_bytes::<WORDS_V6, 0>(self, shards),
        }
    }
}

impl dyn PlainEngines {
    /// Creates an empty table for keys of `K` words.
    ///
    /// # Panics
    /// If the records are not those of the default definition. The abilities of such engines
    /// exclude other definitions.
    #[must_use]
    pub fn open<const K: usize, const N: usize>(
        &self,
        shards: usize,
        evict_after: u8,
        plan: Plan,
        hasher: KeyHasher,
    ) -> BoxedEngine<K, N> {
        let engine: Box<dyn Any> = match K {
            WORDS_V4 => Box::new(self.open_v4(shards, evict_after, plan, hasher)),
            _ => Box::new(self.open_v6(shards, evict_after, plan, hasher)),
        };
        match engine.downcast::<BoxedEngine<K, N>>() {
            Ok(engine) => *engine,
            Err(_) => panic!("records with {K} words of key and {N} of features are not plain"),
        }
    }
}
