//! The SACK blocks of the acknowledgment before, so that only what they add goes to the scoreboard.

use crate::segment::{MAX_SACK_BLOCKS, SackBlock};

/// What the last acknowledgment of one kind reported, the most recent first; empty blocks fill the rest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Blocks([SackBlock; MAX_SACK_BLOCKS]);

impl Blocks {
    /// What `block`, which stands at place `at` of the next acknowledgment, adds to this one; `None` where it adds nothing.
    #[inline(always)]
    pub(super) fn news_of(&self, at: usize, mut block: SackBlock) -> Option<SackBlock> {
        // Unchanged blocks stay in place, or move down by one when a new one comes first.
        if block == self.0[at] || block == self.0[at.saturating_sub(1)] {
            return None;
        }
        // The usual news: the block that grew last has grown on, upwards or, from the tail, downwards.
        let last = self.0[0];
        if block.start == last.start && block.end > last.end {
            block.start = last.end;
        } else if block.end == last.end && block.start < last.start {
            block.end = last.start;
        } else {
            self.cut_known(&mut block);
        }
        Some(block)
    }

    /// What `blocks` add where they report the usual: that the block which grew last has grown on upwards, the others being as they
    /// were. They are the last ones from then on.
    #[inline(always)]
    pub(super) fn take_growth(&mut self, blocks: &[SackBlock]) -> Option<SackBlock> {
        let [first, rest @ ..] = blocks else { return None };
        let [last, others @ ..] = &mut self.0;
        let is_growth =
            first.start == last.start && first.end > last.end && rest.iter().eq(others.iter().take(rest.len()));
        let news = SackBlock { start: last.end, end: first.end };
        is_growth.then(|| {
            *last = *first;
            news
        })
    }

    /// Takes off both ends of `block` what was reported.
    #[inline(never)]
    fn cut_known(&self, block: &mut SackBlock) {
        for &old in &self.0 {
            if old.start <= block.start && block.start < old.end {
                block.start = old.end.min(block.end);
            }
            if old.start < block.end && block.end <= old.end {
                block.end = old.start.max(block.start);
            }
        }
    }

    /// An acknowledgment reports `blocks`, of which there are [`MAX_SACK_BLOCKS`] at most.
    #[inline(always)]
    pub(super) fn replace(&mut self, blocks: &[SackBlock]) {
        for (place, block) in self.0.iter_mut().zip(blocks) {
            *place = *block;
        }
    }
}
