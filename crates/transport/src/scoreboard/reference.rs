//! A reference scoreboard without bitmaps, with one map entry per segment, and a random test of the real one against
//! it.

use super::{Scoreboard, TRACKED_ARRIVALS};
use crate::segment::SackBlock;
use sparelane_core::{Domain, Seq, Stream};
use std::collections::BTreeMap;

/// The state of one segment, with the names of the bits of `Word`.
#[derive(Clone, Copy, Debug, Default)]
struct SegmentState {
    sacked: bool,
    gone: bool,
    lost: bool,
    resent: bool,
    skipped: bool,
    low: bool,
}

#[derive(Debug, Default)]
struct Reference {
    una: Seq,
    /// No segment at or above has been modified.
    end: Seq,
    states: BTreeMap<Seq, SegmentState>,
    /// Class-0 arrivals for loss detection, in descending order.
    arrivals: Vec<Seq>,
    lost_edge: Seq,
    resent_end: Seq,
    has_new_losses: bool,
}

impl Reference {
    fn at(&self, seq: Seq) -> SegmentState {
        self.states.get(&seq).copied().unwrap_or_default()
    }

    fn entry(&mut self, seq: Seq) -> &mut SegmentState {
        self.end = self.end.max(seq + 1);
        self.states.entry(seq).or_default()
    }

    fn count(&self, pick: impl Fn(&SegmentState) -> bool) -> u32 {
        self.states.values().filter(|state| pick(state)).count() as u32
    }

    fn first(&self, from: Seq, end: Seq, pick: impl Fn(&SegmentState) -> bool) -> Option<Seq> {
        (from.max(self.una)..end.min(self.end)).find(|&seq| pick(&self.at(seq)))
    }

    fn advance(&mut self, to: Seq) {
        self.una = to;
        self.states.retain(|&seq, _| seq >= to);
        self.arrivals.retain(|&seq| seq >= to);
    }

    fn sack(&mut self, start: Seq, end: Seq, nxt: Seq, in_class0: bool) -> u32 {
        let mut newly = 0;
        for seq in start.max(self.una)..end {
            let state = *self.entry(seq);
            if seq >= nxt && !state.low {
                continue;
            }
            if in_class0 && seq < nxt && !state.low && (!state.gone || state.resent) {
                self.arrive(seq);
            }
            if !state.sacked {
                newly += 1;
                let state = self.entry(seq);
                state.sacked = true;
                (state.lost, state.gone) = (false, state.gone || state.lost);
            }
        }
        newly
    }

    fn arrive(&mut self, seq: Seq) -> bool {
        let state = self.entry(seq);
        let is_new = !state.gone;
        (state.lost, state.resent, state.gone) = (false, false, true);
        if is_new {
            self.arrivals.push(seq);
            self.arrivals.sort_unstable_by(|one, other| other.cmp(one));
        }
        is_new
    }

    fn detect_losses(&mut self) -> bool {
        self.arrivals.get(TRACKED_ARRIVALS - 1).copied().is_some_and(|third| self.lose_below(third))
    }

    fn detect_losses_with_threshold(&mut self, threshold: u32) -> bool {
        let arrived: Vec<_> = self.states.iter().rev().filter(|(_, state)| state.gone && !state.skipped).collect();
        let last = arrived.get(threshold as usize - 1).map(|(seq, _)| **seq);
        last.is_some_and(|last| self.lose_below(last))
    }

    fn lose_below(&mut self, end: Seq) -> bool {
        let start = self.lost_edge.max(self.una);
        if end <= start {
            return false;
        }
        let mut found = false;
        for seq in start..end {
            let state = self.entry(seq);
            if state.gone || state.lost {
                continue;
            }
            if state.sacked {
                state.gone = true;
            } else {
                state.lost = true;
                found |= !state.resent;
            }
        }
        self.lost_edge = end;
        self.has_new_losses |= found;
        found
    }

    fn mark_segment_lost(&mut self, seq: Seq) {
        let state = self.entry(seq);
        if state.sacked {
            state.gone = true;
        } else {
            (state.resent, state.lost) = (false, true);
            self.has_new_losses = true;
        }
    }

    fn restore_in_flight(&mut self, seq: Seq, is_retransmission: bool) {
        let state = self.entry(seq);
        if state.lost && !state.resent {
            (state.resent, state.lost) = (is_retransmission, is_retransmission);
        }
    }

    fn lose_head(&mut self) {
        if !self.at(self.una).resent {
            self.lose_below(self.una + 1);
        }
    }

    fn time_out(&mut self, nxt: Seq, forget_sacks: bool) {
        self.end = self.end.max(nxt);
        for seq in self.una..self.end {
            let state = self.entry(seq);
            if forget_sacks {
                (state.sacked, state.skipped, state.gone) = (false, false, false);
            }
            state.resent = false;
            state.gone |= seq < nxt && state.sacked;
            state.lost = seq < nxt && !state.gone;
        }
        self.arrivals.clear();
        (self.lost_edge, self.resent_end) = (nxt, self.una);
    }

    fn undo_losses(&mut self) {
        self.states.values_mut().for_each(|state| state.lost = false);
        self.arrivals.clear();
        self.lost_edge = self.una;
    }

    fn next_lost(&self) -> Option<Seq> {
        self.first(0, Seq::MAX, |state| state.lost && !state.resent)
    }

    fn next_by_rule_3(&self) -> Option<Seq> {
        let highest = *self.arrivals.first()?;
        self.first(self.resent_end, highest, |state| !state.sacked && !state.resent && !state.skipped)
    }

    fn highest_outstanding(&self, end: Seq) -> Option<Seq> {
        let found = (self.una..end).rev().find(|&seq| !self.at(seq).sacked)?;
        (!self.at(found).resent).then_some(found)
    }
}

/// Both scoreboards, and the next new segment.
struct Pair {
    board: Scoreboard,
    reference: Reference,
    nxt: Seq,
}

impl Pair {
    fn act(&mut self, rng: &mut Stream) {
        let Pair { board, reference, nxt } = self;
        let una = reference.una;
        let at = una + rng.below(*nxt - una + 1);
        let state = reference.at(at);
        // The ranges weight the operations. Guards keep to the preconditions of the sender.
        match rng.below(40) {
            0..4 => *nxt += 1 + rng.below(90),
            4..7 => {
                let to = if rng.below(2) == 0 { at } else { (una + rng.below(3)).min(*nxt) };
                board.advance(to);
                reference.advance(to);
            }
            7..12 => {
                let longest = if rng.below(2) == 0 { 1 } else { 150 };
                let end = (at + 1 + rng.below(longest)).min(*nxt);
                assert_eq!(board.sack(SackBlock { start: at, end }, *nxt, true), reference.sack(at, end, *nxt, true));
            }
            12..15 => {
                let (start, end) = (at.saturating_sub(rng.below(5)), at + 1 + rng.below(100));
                assert_eq!(board.sack(SackBlock { start, end }, *nxt, false), reference.sack(start, end, *nxt, false));
            }
            15..20 if at < *nxt => assert_eq!(board.mark_arrived(at), reference.arrive(at)),
            20..24 => assert_eq!(board.detect_losses(), reference.detect_losses()),
            24 => {
                let threshold = 1 + rng.below(80) as u32;
                assert_eq!(
                    board.detect_losses_with_threshold(threshold),
                    reference.detect_losses_with_threshold(threshold),
                    "by {threshold}"
                );
            }
            25..30 => {
                assert_eq!(board.next_lost(), reference.next_lost());
                if let Some(seq) = reference.next_lost() {
                    board.mark_retransmitted(seq);
                    reference.entry(seq).resent = true;
                    reference.resent_end = reference.resent_end.max(seq + 1);
                }
            }
            30 if at < *nxt && !state.gone && !state.sacked => {
                board.mark_rescued(at);
                reference.entry(at).resent = true;
            }
            31..33 if at < *nxt && !state.gone && (!state.lost || state.resent) => {
                board.mark_segment_lost(at);
                reference.mark_segment_lost(at);
            }
            // RC3's tail sends segments before the head reaches them. Once the peer has reported the next one, the head
            // skips it.
            33 => {
                let seq = *nxt + rng.below(100);
                board.mark_sent_from_tail(seq);
                reference.entry(seq).low = true;
            }
            34 if reference.at(*nxt).sacked => {
                board.mark_skipped(*nxt);
                let state = reference.entry(*nxt);
                (state.skipped, state.gone) = (true, true);
                *nxt += 1;
            }
            35 if una < *nxt && !reference.at(una).gone => {
                board.mark_head_lost();
                reference.lose_head();
            }
            36 if rng.below(4) == 0 => {
                let forgets = rng.below(2) == 0;
                board.time_out(*nxt, forgets);
                reference.time_out(*nxt, forgets);
                // A timeout may turn out to be spurious; some segments then count as in flight again.
                for seq in una..*nxt {
                    if rng.below(8) == 0 {
                        let is_retransmission = rng.below(2) == 0;
                        board.restore_in_flight(seq, is_retransmission);
                        reference.restore_in_flight(seq, is_retransmission);
                    }
                }
            }
            37 if rng.below(3) == 0 => {
                board.undo_losses();
                reference.undo_losses();
            }
            _ => assert_eq!(board.take_new_losses(), std::mem::take(&mut reference.has_new_losses)),
        }
    }

    fn assert_agree(&mut self, rng: &mut Stream) {
        let Pair { board, reference, nxt } = self;
        let outstanding = (*nxt - reference.una) as u32;
        assert_eq!(board.is_clean(), reference.una >= reference.end);
        assert_eq!(board.sacked(), reference.count(|state| state.sacked));
        assert_eq!(board.skipped(), reference.count(|state| state.skipped));
        assert_eq!(board.gone(), reference.count(|state| state.gone));
        assert_eq!(
            board.arrived_out_of_order(),
            reference.count(|state| state.gone) - reference.count(|state| state.skipped)
        );
        assert_eq!(board.awaits_retransmission(), reference.count(|state| state.lost && !state.resent) > 0);
        let pipe = outstanding + reference.count(|state| state.resent)
            - reference.count(|state| state.gone)
            - reference.count(|state| state.lost);
        assert_eq!(board.pipe(outstanding), pipe);
        assert_eq!(
            (board.head_is_lost(), board.lost_edge()),
            (reference.lost_edge > reference.una, reference.lost_edge)
        );
        assert_eq!(board.next_lost(), reference.next_lost());
        assert_eq!(board.next_by_rule_3(), reference.next_by_rule_3());
        for end in [*nxt, *nxt + 1, reference.una + rng.below(u64::from(outstanding) + 1)] {
            if end > reference.una {
                assert_eq!(board.highest_outstanding(end), reference.highest_outstanding(end), "below {end}");
            }
        }
        let seq = reference.una + rng.below(u64::from(outstanding) + 200);
        let state = reference.at(seq);
        assert_eq!(
            (board.is_sacked(seq), board.is_gone(seq), board.is_lost(seq), board.is_resent(seq)),
            (state.sacked, state.gone, state.lost, state.resent),
            "segment {seq}"
        );
        let above = reference.states.range(seq + 1..).filter(|(_, state)| state.gone && !state.skipped);
        assert_eq!(board.arrivals_above(seq), above.count() as u32, "above {seq}");
        let end = seq + 1 + rng.below(100);
        assert_eq!(board.all_sent_from_tail(seq, end), (seq..end).all(|seq| reference.at(seq).low), "{seq} to {end}");
    }
}

#[test]
fn the_scoreboard_agrees_with_the_reference() {
    for connection in 0..60 {
        let mut rng = Stream::new(11, Domain::Test, connection);
        let mut pair = Pair { board: Scoreboard::new(), reference: Reference::default(), nxt: 20 };
        for _ in 0..600 {
            pair.act(&mut rng);
            pair.assert_agree(&mut rng);
        }
    }
}
