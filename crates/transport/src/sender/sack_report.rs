//! The SACK blocks of the previous acknowledgment.
//!
//! Acknowledgments repeat most of their blocks. Comparison with the previous acknowledgment limits the scoreboard
//! update to the segments that are newly reported.

use crate::segment::{MAX_SACK_BLOCKS, SackBlock};

/// The SACK blocks of the last acknowledgment, most recent first. Unused places hold empty blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SackReport([SackBlock; MAX_SACK_BLOCKS]);

/// The SACK blocks of the last acknowledgments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SackReports {
    /// The last acknowledgment in class 0, or in any class unless the controller uses the tail.
    pub(super) class0: SackReport,
    /// The last acknowledgment in a low class, if the controller uses the tail.
    pub(super) low: SackReport,
}

impl SackReports {
    #[cold]
    #[inline(never)]
    pub(super) fn create() -> Box<SackReports> {
        Box::default()
    }
}

impl SackReport {
    /// Returns the new part of `block`, which is at index `at` of the next acknowledgment, or `None` if nothing is new.
    #[inline(always)]
    pub(super) fn new_part_of(&self, at: usize, mut block: SackBlock) -> Option<SackBlock> {
        // Unchanged blocks keep their index, or move by one when a new block is put first.
        if block == self.0[at] || block == self.0[at.saturating_sub(1)] {
            return None;
        }
        // Common case: the most recent block grew again, upwards or (segments from the tail) downwards.
        let last = self.0[0];
        if block.start == last.start && block.end > last.end {
            block.start = last.end;
        } else if block.end == last.end && block.start < last.start {
            block.end = last.start;
        } else {
            self.trim_reported(&mut block);
        }
        Some(block)
    }

    /// Handles the most common change: only the first block grew, at its end. Returns the new part and stores the
    /// block, or returns `None` and changes nothing.
    #[inline(always)]
    pub(super) fn update_if_first_grew(&mut self, blocks: &[SackBlock]) -> Option<SackBlock> {
        let [first, rest @ ..] = blocks else { return None };
        let [last, others @ ..] = &mut self.0;
        let is_growth =
            first.start == last.start && first.end > last.end && rest.iter().eq(others.iter().take(rest.len()));
        let new_part = SackBlock { start: last.end, end: first.end };
        is_growth.then(|| {
            *last = *first;
            new_part
        })
    }

    /// Handles the same change, if the first block grew by one segment and the number of blocks is the same or smaller.
    /// Stores the block, or returns `false` and changes nothing.
    #[inline(always)]
    pub(super) fn grow_by_one(&mut self, blocks: &[SackBlock]) -> bool {
        let [first, ..] = blocks else { return false };
        first.end == self.0[0].end + 1 && self.update_if_first_grew(blocks).is_some()
    }

    /// Trims the parts that were already reported from both ends of `block`.
    #[inline(never)]
    fn trim_reported(&self, block: &mut SackBlock) {
        for &old in &self.0 {
            if old.start <= block.start && block.start < old.end {
                block.start = old.end.min(block.end);
            }
            if old.start < block.end && block.end <= old.end {
                block.end = old.start.max(block.start);
            }
        }
    }

    /// Stores `blocks`, at most [`MAX_SACK_BLOCKS`], for the next comparison.
    #[inline(always)]
    pub(super) fn replace(&mut self, blocks: &[SackBlock]) {
        for (place, block) in self.0.iter_mut().zip(blocks) {
            *place = *block;
        }
    }
}
