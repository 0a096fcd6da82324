//! SACK blocks under way, and what else an acknowledgment echoes beside them: a slab beside the packets, so that packets
//! without any stay small.

use crate::wire::packet::NO_BLOCKS;
use sparelane_core::prefetch;
use sparelane_transport::{MAX_SACK_BLOCKS, SackBlock};

/// The blocks of one acknowledgment, and the rate that it echoes if it has a rate header.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    blocks: [SackBlock; MAX_SACK_BLOCKS],
    count: u8,
    /// As in a rate header.
    rate: u32,
    /// The one-way delay, or the receiver's clock, nanoseconds.
    echo_ns: u32,
}

/// The slab.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockSlab {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

impl BlockSlab {
    /// Stores `blocks` and returns their index; [`NO_BLOCKS`] for none.
    #[inline(always)]
    pub(crate) fn store(&mut self, blocks: &[SackBlock]) -> u32 {
        if blocks.is_empty() { NO_BLOCKS } else { self.store_some(blocks) }
    }

    fn store_some(&mut self, blocks: &[SackBlock]) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            self.entries.len() as u32 - 1
        });
        let entry = &mut self.entries[index as usize];
        entry.count = blocks.len() as u8;
        for (place, block) in entry.blocks.iter_mut().zip(blocks) {
            *place = *block;
        }
        index
    }

    /// Adds the rate of a rate header to the entry at `index`, or to a new one without blocks; returns its index.
    #[inline(never)]
    pub(crate) fn with_rate(&mut self, index: u32, rate: u32) -> u32 {
        let index = if index == NO_BLOCKS { self.store_some(&[]) } else { index };
        self.entries[index as usize].rate = rate;
        index
    }

    /// Adds a one-way delay or a receive time to the entry at `index`, or to a new one without blocks; returns its index.
    #[inline(never)]
    pub(crate) fn with_echo(&mut self, index: u32, echo_ns: u32) -> u32 {
        let index = if index == NO_BLOCKS { self.store_some(&[]) } else { index };
        self.entries[index as usize].echo_ns = echo_ns;
        index
    }

    /// The delay or time that was added to the entry at `index`, nanoseconds.
    pub(crate) fn echo_at(&self, index: u32) -> u32 {
        self.entries[index as usize].echo_ns
    }

    /// The rate that was added to the entry at `index`.
    pub(crate) fn rate_at(&self, index: u32) -> u32 {
        self.entries[index as usize].rate
    }

    /// The blocks at `index`.
    #[inline(always)]
    pub(crate) fn at(&self, index: u32) -> &[SackBlock] {
        if index == NO_BLOCKS {
            return &[];
        }
        let entry = &self.entries[index as usize];
        &entry.blocks[..usize::from(entry.count)]
    }

    /// The entry at `index`, if it is one, will be wanted soon.
    #[inline(always)]
    pub(crate) fn expect(&self, index: u32) {
        if let Some(entry) = self.entries.get(index as usize) {
            prefetch(entry);
        }
    }

    /// Gives the entry at `index` back.
    #[inline(always)]
    pub(crate) fn release(&mut self, index: u32) {
        if index != NO_BLOCKS {
            self.free.push(index);
        }
    }

    /// Entries in use.
    #[cfg(any(test, feature = "oracle"))]
    pub(crate) fn in_use(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}
