//! SACK blocks of acknowledgments in flight, and other values that acknowledgments echo: a slab next to the packets.
//!
//! Few acknowledgments have blocks, and blocks are larger than a packet. Keeping them here leaves packets at 32 bytes.

use crate::wire::packet::NO_BLOCKS;
use crate::wire::telemetry::EntryNumber;
use sparelane_core::prefetch;
use sparelane_transport::{AccurateEcho, MAX_SACK_BLOCKS, SackBlock};

/// The blocks of one acknowledgment, and further values that it echoes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    blocks: [SackBlock; MAX_SACK_BLOCKS],
    count: u8,
    /// The rate of a rate header, encoded.
    rate: u32,
    /// The one-way delay, or the receiver's clock, in nanoseconds.
    echo_ns: u32,
    /// The advertised window, in segments.
    window: u32,
    /// The accurate ECN feedback.
    accurate: Option<AccurateEcho>,
    /// The entry with the telemetry of the segment, or zero.
    telemetry: EntryNumber,
}

/// The slab.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockSlab {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

impl BlockSlab {
    /// Stores `blocks` and returns their index; [`NO_BLOCKS`] if `blocks` is empty.
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
        entry.accurate = None;
        entry.telemetry = 0;
        for (place, block) in entry.blocks.iter_mut().zip(blocks) {
            *place = *block;
        }
        index
    }

    /// Stores a copy of the entry at `index`, if there is one, and returns its index.
    pub(crate) fn copied(&mut self, index: u32) -> u32 {
        self.entries.get(index as usize).copied().map_or(NO_BLOCKS, |entry| self.put(entry))
    }

    /// Takes the entry at `index` out.
    pub(crate) fn take(&mut self, index: u32) -> Entry {
        self.free.push(index);
        self.entries[index as usize]
    }

    /// Stores an entry and returns its index.
    pub(crate) fn put(&mut self, entry: Entry) -> u32 {
        let index = self.store_some(&[]);
        self.entries[index as usize] = entry;
        index
    }

    /// Adds the rate of a rate header to the entry at `index`, or to a new entry without blocks. Returns the index.
    #[inline(never)]
    pub(crate) fn with_rate(&mut self, index: u32, rate: u32) -> u32 {
        let index = if index == NO_BLOCKS { self.store_some(&[]) } else { index };
        self.entries[index as usize].rate = rate;
        index
    }

    /// Adds a one-way delay or a receive time to the entry at `index`, or to a new entry without blocks. Returns the
    /// index.
    #[inline(never)]
    pub(crate) fn with_echo(&mut self, index: u32, echo_ns: u32) -> u32 {
        let index = if index == NO_BLOCKS { self.store_some(&[]) } else { index };
        self.entries[index as usize].echo_ns = echo_ns;
        index
    }

    /// Adds an advertised window to the entry at `index`, or to a new entry without blocks. Returns the index.
    #[inline(never)]
    pub(crate) fn with_window(&mut self, index: u32, segments: u32) -> u32 {
        let index = if index == NO_BLOCKS { self.store_some(&[]) } else { index };
        self.entries[index as usize].window = segments;
        index
    }

    /// Adds accurate ECN feedback to the entry at `index`, or to a new entry without blocks. Returns the index.
    #[inline(never)]
    pub(crate) fn with_accurate(&mut self, index: u32, echo: AccurateEcho) -> u32 {
        let index = if index == NO_BLOCKS { self.store_some(&[]) } else { index };
        self.entries[index as usize].accurate = Some(echo);
        index
    }

    /// Adds an entry of telemetry to the entry at `index`, or to a new entry without blocks. Returns the index.
    #[inline(never)]
    pub(crate) fn with_telemetry(&mut self, index: u32, telemetry: EntryNumber) -> u32 {
        let index = if index == NO_BLOCKS { self.store_some(&[]) } else { index };
        self.entries[index as usize].telemetry = telemetry;
        index
    }

    /// The number of the telemetry in the entry at `index`, or zero.
    pub(crate) fn telemetry_at(&self, index: u32) -> EntryNumber {
        self.entries.get(index as usize).map_or(0, |entry| entry.telemetry)
    }

    /// The accurate ECN feedback in the entry at `index`, if there is any.
    pub(crate) fn accurate_at(&self, index: u32) -> Option<AccurateEcho> {
        self.entries.get(index as usize).and_then(|entry| entry.accurate)
    }

    /// The advertised window in the entry at `index`, segments.
    pub(crate) fn window_at(&self, index: u32) -> u32 {
        self.entries[index as usize].window
    }

    /// The delay or time in the entry at `index`, nanoseconds.
    pub(crate) fn echo_at(&self, index: u32) -> u32 {
        self.entries[index as usize].echo_ns
    }

    /// The encoded rate in the entry at `index`.
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

    /// Prefetches the entry at `index`, if there is one.
    #[inline(always)]
    pub(crate) fn expect(&self, index: u32) {
        if let Some(entry) = self.entries.get(index as usize) {
            prefetch(entry);
        }
    }

    /// Frees the entry at `index`.
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
