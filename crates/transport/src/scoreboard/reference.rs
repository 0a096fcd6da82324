//! A reference scoreboard without bitmaps, with one map entry per segment, and a random test of the real one against
//! it.

use super::{RANKS, Scoreboard};
use crate::segment::SackBlock;
use sparelane_core::{Domain, Seq, Stream};
use std::collections::BTreeMap;

/// The state of one segment, with the names of the bits of `Word`.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    sacked: bool,
    gone: bool,
    lost: bool,
    resent: bool,
    skipped: bool,
    low: bool,
}

#[derive(Debug, Default)]
struct Plain {
    una: Seq,
    /// No segment at or above has been modified.
    end: Seq,
    known: BTreeMap<Seq, Known>,
    /// Class-0 arrivals for loss detection, in descending order.
    ranked: Vec<Seq>,
    lost_edge: Seq,
    resent_end: Seq,
    has_news_of_losses: bool,
}

impl Plain {
    fn at(&self, seq: Seq) -> Known {
        self.known.get(&seq).copied().unwrap_or_default()
    }

    fn name(&mut self, seq: Seq) -> &mut Known {
        self.end = self.end.max(seq + 1);
        self.known.entry(seq).or_default()
    }

    fn count(&self, pick: impl Fn(&Known) -> bool) -> u32 {
        self.known.values().filter(|known| pick(known)).count() as u32
    }

    fn first(&self, from: Seq, end: Seq, pick: impl Fn(&Known) -> bool) -> Option<Seq> {
        (from.max(self.una)..end.min(self.end)).find(|&seq| pick(&self.at(seq)))
    }

    fn advance(&mut self, to: Seq) {
        self.una = to;
        self.known.retain(|&seq, _| seq >= to);
        self.ranked.retain(|&seq| seq >= to);
    }

    fn sack(&mut self, start: Seq, end: Seq, nxt: Seq, in_class0: bool) -> u32 {
        let mut newly = 0;
        for seq in start.max(self.una)..end {
            let known = *self.name(seq);
            if seq >= nxt && !known.low {
                continue;
            }
            if in_class0 && seq < nxt && !known.low && (!known.gone || known.resent) {
                self.arrive(seq);
            }
            if !known.sacked {
                newly += 1;
                let known = self.name(seq);
                known.sacked = true;
                (known.lost, known.gone) = (false, known.gone || known.lost);
            }
        }
        newly
    }

    fn arrive(&mut self, seq: Seq) -> bool {
        let known = self.name(seq);
        let is_news = !known.gone;
        (known.lost, known.resent, known.gone) = (false, false, true);
        if is_news {
            self.ranked.push(seq);
            self.ranked.sort_unstable_by(|one, other| other.cmp(one));
        }
        is_news
    }

    fn detect_losses(&mut self) -> bool {
        self.ranked.get(RANKS - 1).copied().is_some_and(|third| self.lose_below(third))
    }

    fn detect_losses_overtaken_by(&mut self, threshold: u32) -> bool {
        let arrived: Vec<_> = self.known.iter().rev().filter(|(_, known)| known.gone && !known.skipped).collect();
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
            let known = self.name(seq);
            if known.gone || known.lost {
                continue;
            }
            if known.sacked {
                known.gone = true;
            } else {
                known.lost = true;
                found |= !known.resent;
            }
        }
        self.lost_edge = end;
        self.has_news_of_losses |= found;
        found
    }

    fn lose(&mut self, seq: Seq) {
        let known = self.name(seq);
        if known.sacked {
            known.gone = true;
        } else {
            (known.resent, known.lost) = (false, true);
            self.has_news_of_losses = true;
        }
    }

    fn keep_in_flight(&mut self, seq: Seq, is_retransmission: bool) {
        let known = self.name(seq);
        if known.lost && !known.resent {
            (known.resent, known.lost) = (is_retransmission, is_retransmission);
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
            let known = self.name(seq);
            if forget_sacks {
                (known.sacked, known.skipped, known.gone) = (false, false, false);
            }
            known.resent = false;
            known.gone |= seq < nxt && known.sacked;
            known.lost = seq < nxt && !known.gone;
        }
        self.ranked.clear();
        (self.lost_edge, self.resent_end) = (nxt, self.una);
    }

    fn undo_losses(&mut self) {
        self.known.values_mut().for_each(|known| known.lost = false);
        self.ranked.clear();
        self.lost_edge = self.una;
    }

    fn next_lost(&self) -> Option<Seq> {
        self.first(0, Seq::MAX, |known| known.lost && !known.resent)
    }

    fn next_doubtful(&self) -> Option<Seq> {
        let highest = *self.ranked.first()?;
        self.first(self.resent_end, highest, |known| !known.sacked && !known.resent && !known.skipped)
    }

    fn highest_outstanding(&self, end: Seq) -> Option<Seq> {
        let found = (self.una..end).rev().find(|&seq| !self.at(seq).sacked)?;
        (!self.at(found).resent).then_some(found)
    }
}

/// Both scoreboards, and the next new segment.
struct Pair {
    board: Scoreboard,
    plain: Plain,
    nxt: Seq,
}

impl Pair {
    fn act(&mut self, rng: &mut Stream) {
        let Pair { board, plain, nxt } = self;
        let una = plain.una;
        let at = una + rng.below(*nxt - una + 1);
        let known = plain.at(at);
        match rng.below(40) {
            0..4 => *nxt += 1 + rng.below(90),
            4..7 => {
                let to = if rng.below(2) == 0 { at } else { (una + rng.below(3)).min(*nxt) };
                board.advance(to);
                plain.advance(to);
            }
            7..12 => {
                let longest = if rng.below(2) == 0 { 1 } else { 150 };
                let end = (at + 1 + rng.below(longest)).min(*nxt);
                assert_eq!(board.sack(SackBlock { start: at, end }, *nxt, true), plain.sack(at, end, *nxt, true));
            }
            12..15 => {
                let (start, end) = (at.saturating_sub(rng.below(5)), at + 1 + rng.below(100));
                assert_eq!(board.sack(SackBlock { start, end }, *nxt, false), plain.sack(start, end, *nxt, false));
            }
            15..20 if at < *nxt => assert_eq!(board.arrived(at), plain.arrive(at)),
            20..24 => assert_eq!(board.detect_losses(), plain.detect_losses()),
            24 => {
                let threshold = 1 + rng.below(80) as u32;
                assert_eq!(
                    board.detect_losses_overtaken_by(threshold),
                    plain.detect_losses_overtaken_by(threshold),
                    "by {threshold}"
                );
            }
            25..30 => {
                assert_eq!(board.next_lost(), plain.next_lost());
                if let Some(seq) = plain.next_lost() {
                    board.resend(seq);
                    plain.name(seq).resent = true;
                    plain.resent_end = plain.resent_end.max(seq + 1);
                }
            }
            30 if at < *nxt && !known.gone && !known.sacked => {
                board.rescue(at);
                plain.name(at).resent = true;
            }
            31..33 if at < *nxt && !known.gone && (!known.lost || known.resent) => {
                board.lose(at);
                plain.lose(at);
            }
            33 => {
                let seq = *nxt + rng.below(100);
                board.send_low(seq);
                plain.name(seq).low = true;
            }
            34 if plain.at(*nxt).sacked => {
                board.skip(*nxt);
                let known = plain.name(*nxt);
                (known.skipped, known.gone) = (true, true);
                *nxt += 1;
            }
            35 if una < *nxt && !plain.at(una).gone => {
                board.mark_head_lost();
                plain.lose_head();
            }
            36 if rng.below(4) == 0 => {
                let forgets = rng.below(2) == 0;
                board.time_out(*nxt, forgets);
                plain.time_out(*nxt, forgets);
                for seq in una..*nxt {
                    if rng.below(8) == 0 {
                        let is_retransmission = rng.below(2) == 0;
                        board.keep_in_flight(seq, is_retransmission);
                        plain.keep_in_flight(seq, is_retransmission);
                    }
                }
            }
            37 if rng.below(3) == 0 => {
                board.undo_losses();
                plain.undo_losses();
            }
            _ => assert_eq!(board.take_news_of_losses(), std::mem::take(&mut plain.has_news_of_losses)),
        }
    }

    fn assert_agree(&mut self, rng: &mut Stream) {
        let Pair { board, plain, nxt } = self;
        let outstanding = (*nxt - plain.una) as u32;
        assert_eq!(board.is_clean(), plain.una >= plain.end);
        assert_eq!(board.sacked(), plain.count(|known| known.sacked));
        assert_eq!(board.skipped(), plain.count(|known| known.skipped));
        assert_eq!(board.gone(), plain.count(|known| known.gone));
        assert_eq!(board.arrived_out_of_order(), plain.count(|known| known.gone) - plain.count(|known| known.skipped));
        assert_eq!(board.waiting_to_be_resent(), plain.count(|known| known.lost && !known.resent) > 0);
        let pipe = outstanding + plain.count(|known| known.resent)
            - plain.count(|known| known.gone)
            - plain.count(|known| known.lost);
        assert_eq!(board.pipe(outstanding), pipe);
        assert_eq!((board.head_is_lost(), board.lost_edge()), (plain.lost_edge > plain.una, plain.lost_edge));
        assert_eq!(board.next_lost(), plain.next_lost());
        assert_eq!(board.next_doubtful(), plain.next_doubtful());
        for end in [*nxt, *nxt + 1, plain.una + rng.below(u64::from(outstanding) + 1)] {
            if end > plain.una {
                assert_eq!(board.highest_outstanding(end), plain.highest_outstanding(end), "below {end}");
            }
        }
        let seq = plain.una + rng.below(u64::from(outstanding) + 200);
        let known = plain.at(seq);
        assert_eq!(
            (board.is_sacked(seq), board.is_gone(seq), board.is_lost(seq), board.is_resent(seq)),
            (known.sacked, known.gone, known.lost, known.resent),
            "segment {seq}"
        );
        let above = plain.known.range(seq + 1..).filter(|(_, known)| known.gone && !known.skipped);
        assert_eq!(board.arrivals_above(seq), above.count() as u32, "above {seq}");
        let end = seq + 1 + rng.below(100);
        assert_eq!(board.all_went_low(seq, end), (seq..end).all(|seq| plain.at(seq).low), "{seq} to {end}");
    }
}

#[test]
fn the_scoreboard_agrees_with_the_reference() {
    for connection in 0..60 {
        let mut rng = Stream::new(11, Domain::Test, connection);
        let mut pair = Pair { board: Scoreboard::new(), plain: Plain::default(), nxt: 20 };
        for _ in 0..600 {
            pair.act(&mut rng);
            pair.assert_agree(&mut rng);
        }
    }
}
