//! The scoreboard: the state of each segment above the cumulative acknowledgment (RFC 6675 section 3).
//!
//! Each segment has six bits, stored in a ring of bitmaps of 64 segments. Without losses and reordering all bits are
//! zero, and the ring is never accessed.
//!
//! Loss detection is separate per class. Priorities overtake each other, so the arrival of a low-priority copy is no
//! evidence about class-0 segments sent before it. `sacked` means that the receiver holds the segment, reported in any
//! class. `gone` means that the class-0 copy has left the network, which only class-0 acknowledgments can report. A
//! segment is lost once three class-0 segments above it have arrived: RFC 6675's IsLost with DupThresh = 3, counted in
//! segments.

use crate::segment::SackBlock;
use sparelane_core::Seq;
use sparelane_core::maths::low_bits;

/// RFC 6675's DupThresh.
pub const DUP_THRESH: u32 = 3;

/// The number of highest arrivals that are tracked.
const TRACKED_ARRIVALS: usize = DUP_THRESH as usize;

/// Segments per word.
const BITS: Seq = u64::BITS as Seq;

/// The bits of 64 consecutive segments.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    /// The receiver holds the segment.
    sacked: u64,
    /// The class-0 copy has left the network, or was never sent.
    gone: u64,
    /// The class-0 copy is presumed lost.
    lost: u64,
    /// A retransmission is in flight.
    resent: u64,
    /// Never sent in class 0, because the receiver already held it.
    skipped: u64,
    /// Sent from the tail.
    low: u64,
}

impl Word {
    /// Segments whose class-0 copies are known to have left the network.
    fn arrived(&self) -> u64 {
        self.gone & !self.skipped
    }

    /// Segments about which a class-0 report is evidence: their class-0 copies are not known to have left the network,
    /// and no copy from the tail could have caused the report.
    #[inline(always)]
    fn provable(&self) -> u64 {
        !self.low & (!self.gone | self.resent)
    }
}

/// The scoreboard of one connection.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Scoreboard {
    /// Segments below are cumulatively acknowledged; their bits are zero.
    una: Seq,
    /// All bits at or above are zero.
    dirty_end: Seq,
    /// The number of set bits of each kind.
    sacked: u32,
    gone: u32,
    lost: u32,
    resent: u32,
    skipped: u32,
    /// The number of lost segments whose retransmission is not in flight.
    pending: u32,
    /// The bits; `None` before the first loss, the first SACK block and the first segment from the tail.
    marks: Option<Box<Marks>>,
}

/// The bits of a scoreboard, and the places in them.
#[derive(Clone, Debug)]
#[repr(C)]
struct Marks {
    words: Vec<Word>,
    /// All segments below that were in flight have been marked lost.
    lost_edge: Seq,
    /// The highest out-of-order class-0 arrivals, in descending order.
    top: [Seq; TRACKED_ARRIVALS],
    top_len: u32,
    /// Losses were detected since the last call of [`Scoreboard::take_new_losses`].
    has_new_losses: bool,
    /// No segment below awaits retransmission.
    resend_from: Seq,
    /// One past the highest retransmitted segment, except for the rescue retransmission (HighRxt of RFC 6675).
    resent_end: Seq,
}

/// The state of a connection without any marks.
static UNMARKED: Marks = Marks {
    words: Vec::new(),
    lost_edge: 0,
    top: [0; TRACKED_ARRIVALS],
    top_len: 0,
    has_new_losses: false,
    resend_from: 0,
    resent_end: 0,
};

impl Marks {
    /// Returns the marks, and creates them at the first call.
    #[inline(always)]
    fn of(marks: &mut Option<Box<Marks>>) -> &mut Marks {
        marks.get_or_insert_with(Marks::create)
    }

    #[cold]
    #[inline(never)]
    fn create() -> Box<Marks> {
        Box::new(UNMARKED.clone())
    }

    #[inline(always)]
    fn slot(&self, word: Seq) -> usize {
        word as usize & (self.words.len() - 1)
    }

    /// Returns the bits of the 64 segments of `word`.
    #[inline(always)]
    fn word(&self, word: Seq) -> &Word {
        &self.words[self.slot(word)]
    }

    /// Returns the bits of the 64 segments of `word` for modification.
    #[inline(always)]
    fn word_mut(&mut self, word: Seq) -> &mut Word {
        let slot = self.slot(word);
        &mut self.words[slot]
    }

    /// Returns the lowest segment from `from` to before `end` whose bit is set in `pick`.
    fn first(&self, from: Seq, end: Seq, pick: impl Fn(&Word) -> u64) -> Option<Seq> {
        if from >= end {
            return None;
        }
        (from / BITS..end.div_ceil(BITS)).find_map(|word| {
            let found = pick(self.word(word)) & mask(word, from, end);
            (found != 0).then(|| word * BITS + Seq::from(found.trailing_zeros()))
        })
    }

    #[inline(always)]
    fn ensure_room(&mut self, una: Seq, dirty_end: &mut Seq, end: Seq) {
        if end + BITS > (una / BITS + self.words.len() as Seq) * BITS {
            self.grow(una, *dirty_end, end);
        }
        *dirty_end = (*dirty_end).max(end);
    }

    /// Makes room for the bits below `end`. Those from `una` to before `dirty_end` are kept.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, una: Seq, dirty_end: Seq, end: Seq) {
        let first = una / BITS;
        let needed = (end.div_ceil(BITS).max(first + 1) - first) as usize + 1;
        if needed > self.words.len() {
            let mut words = vec![Word::default(); needed.next_power_of_two().max(4)];
            if una < dirty_end {
                for word in first..dirty_end.div_ceil(BITS) {
                    let to = word as usize & (words.len() - 1);
                    words[to] = *self.word(word);
                }
            }
            self.words = words;
        }
    }

    /// Inserts `seq` into the highest arrivals. Returns `false` if it is below all of them.
    #[inline(always)]
    fn track_arrival(&mut self, seq: Seq) -> bool {
        if self.top_len as usize == TRACKED_ARRIVALS && seq > self.top[0] {
            self.top = [seq, self.top[0], self.top[1]];
            return true;
        }
        self.insert_arrival(seq)
    }

    #[inline(never)]
    fn insert_arrival(&mut self, seq: Seq) -> bool {
        let count = self.top_len as usize;
        if count == TRACKED_ARRIVALS && seq < self.top[TRACKED_ARRIVALS - 1] {
            return false;
        }
        let mut at = count.min(TRACKED_ARRIVALS - 1);
        self.top_len = at as u32 + 1;
        while at > 0 && self.top[at - 1] < seq {
            self.top[at] = self.top[at - 1];
            at -= 1;
        }
        self.top[at] = seq;
        true
    }
}

/// Returns the bits of `word` that the range from `start` to before `end` covers.
fn mask(word: Seq, start: Seq, end: Seq) -> u64 {
    let first = word * BITS;
    let from = start.saturating_sub(first).min(BITS);
    let to = end.saturating_sub(first).min(BITS);
    low_bits(to as u32) & !low_bits(from as u32)
}

impl Scoreboard {
    /// Creates the scoreboard of a new connection.
    pub fn new() -> Scoreboard {
        Scoreboard::default()
    }

    /// Returns the marks for reading.
    #[inline(always)]
    fn marks(&self) -> &Marks {
        self.marks.as_deref().unwrap_or(&UNMARKED)
    }

    /// Returns the heap memory in bytes.
    pub fn list_bytes(&self) -> usize {
        self.marks.as_ref().map_or(0, |marks| size_of::<Marks>() + marks.words.capacity() * size_of::<Word>())
    }

    /// Returns whether all bits are zero.
    #[inline(always)]
    pub fn is_clean(&self) -> bool {
        self.una >= self.dirty_end
    }

    /// Returns whether losses were detected since the last call.
    #[inline]
    pub fn take_new_losses(&mut self) -> bool {
        self.marks.as_mut().is_some_and(|marks| std::mem::take(&mut marks.has_new_losses))
    }

    /// Returns the number of segments reported above the cumulative acknowledgment.
    #[inline(always)]
    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Returns whether a lost segment awaits retransmission.
    #[inline(always)]
    pub fn awaits_retransmission(&self) -> bool {
        self.pending > 0
    }

    /// Returns the number of segments between the cumulative acknowledgment and `nxt` that were never sent in class 0.
    #[inline(always)]
    pub fn skipped(&self) -> u32 {
        self.skipped
    }

    /// Returns the number of class-0 segments above the cumulative acknowledgment that are known to have left the
    /// network.
    #[inline(always)]
    pub fn arrived_out_of_order(&self) -> u32 {
        self.gone - self.skipped
    }

    /// Returns the number of segments above the cumulative acknowledgment whose class-0 copies have left the network or
    /// were never sent.
    #[inline(always)]
    pub fn gone(&self) -> u32 {
        self.gone
    }

    /// Returns the highest segment whose class-0 copy is known to have arrived since the last timeout, if there is one.
    pub fn highest_arrival(&self) -> Option<Seq> {
        let marks = self.marks();
        (marks.top_len > 0).then_some(marks.top[0])
    }

    /// Returns RFC 6675's pipe: the number of class-0 segments in flight, given the number of segments `sent` between
    /// the cumulative acknowledgment and the next new segment.
    #[inline(always)]
    pub fn pipe(&self, sent: u32) -> u32 {
        sent + self.resent - self.gone - self.lost
    }

    /// Returns whether the oldest outstanding segment is presumed lost.
    pub fn head_is_lost(&self) -> bool {
        self.marks().lost_edge > self.una
    }

    /// Returns whether a retransmission of `seq` is in flight.
    pub fn is_resent(&self, seq: Seq) -> bool {
        self.bit(seq, |word| word.resent)
    }

    /// Returns whether the class-0 copy of `seq` has left the network or was never sent.
    pub fn is_gone(&self, seq: Seq) -> bool {
        self.bit(seq, |word| word.gone)
    }

    /// Returns whether `seq` is presumed lost and no copy of it is known to have arrived.
    pub fn is_lost(&self, seq: Seq) -> bool {
        self.bit(seq, |word| word.lost)
    }

    /// Returns the lowest segment for which loss detection has not been decided: all segments below that were in flight
    /// are marked lost.
    pub fn lost_edge(&self) -> Seq {
        self.marks().lost_edge
    }

    /// Returns whether the receiver has reported `seq`.
    pub fn is_sacked(&self, seq: Seq) -> bool {
        self.bit(seq, |word| word.sacked)
    }

    #[inline]
    fn bit(&self, seq: Seq, pick: impl Fn(&Word) -> u64) -> bool {
        seq < self.dirty_end && pick(self.marks().word(seq / BITS)) >> (seq % BITS) & 1 == 1
    }

    /// Ensures room for the bits below `end`.
    #[inline(always)]
    fn ensure_room(&mut self, end: Seq) {
        Self::with_room(&mut self.marks, self.una, &mut self.dirty_end, end);
    }

    /// Ensures room as [`ensure_room`](Self::ensure_room) does, and returns the marks. It takes single fields so that
    /// the counts can change while the marks are borrowed.
    #[inline(always)]
    fn with_room<'a>(marks: &'a mut Option<Box<Marks>>, una: Seq, dirty_end: &mut Seq, end: Seq) -> &'a mut Marks {
        let marks = Marks::of(marks);
        marks.ensure_room(una, dirty_end, end);
        marks
    }

    /// Advances the cumulative acknowledgment to `to`.
    #[inline(always)]
    pub fn advance(&mut self, to: Seq) {
        if !self.is_clean() {
            self.clear_below(to);
        }
        self.una = to;
    }

    /// Advances the cumulative acknowledgment of a clean scoreboard to `to`.
    #[inline(always)]
    pub fn advance_clean(&mut self, to: Seq) {
        debug_assert!(self.is_clean(), "the scoreboard is not clean");
        self.una = to;
    }

    /// Clears the bits below `to` and subtracts them from the counts.
    #[inline(never)]
    fn clear_below(&mut self, to: Seq) {
        let end = to.min(self.dirty_end);
        let marks = Marks::of(&mut self.marks);
        for word in self.una / BITS..end.div_ceil(BITS) {
            let range = mask(word, self.una, end);
            let bits = marks.word_mut(word);
            // Skipped segments are also gone, so their bits need no test.
            if (bits.sacked | bits.gone | bits.lost | bits.resent | bits.low) & range == 0 {
                continue;
            }
            self.sacked -= (bits.sacked & range).count_ones();
            self.gone -= (bits.gone & range).count_ones();
            self.lost -= (bits.lost & range).count_ones();
            self.pending -= (bits.lost & !bits.resent & range).count_ones();
            self.resent -= (bits.resent & range).count_ones();
            self.skipped -= (bits.skipped & range).count_ones();
            for field in
                [&mut bits.sacked, &mut bits.gone, &mut bits.lost, &mut bits.resent, &mut bits.skipped, &mut bits.low]
            {
                *field &= !range;
            }
        }
        // The arrivals are in descending order: drop those that are now acknowledged.
        while marks.top_len > 0 && marks.top[marks.top_len as usize - 1] < to {
            marks.top_len -= 1;
        }
    }

    /// Applies a SACK block and returns the number of newly reported segments.
    ///
    /// Only segments that were sent count: those below `nxt`, sent in class 0, and those sent from the tail. A report
    /// in class 0 shows that class-0 copies have arrived, even of segments that were already reported in another class.
    /// It does not if a copy from the tail may have caused the report.
    #[inline(always)]
    pub fn sack(&mut self, block: SackBlock, nxt: Seq, in_class0: bool) -> u32 {
        let start = block.start.max(self.una);
        if start >= block.end {
            return 0;
        }
        if block.end - start == 1 {
            return u32::from(self.sack_one(start, nxt, in_class0));
        }
        self.ensure_room(block.end);
        self.sack_several(start, block.end, nxt, in_class0)
    }

    #[inline(never)]
    fn sack_several(&mut self, start: Seq, end: Seq, nxt: Seq, in_class0: bool) -> u32 {
        let mut newly = 0;
        for word in start / BITS..end.div_ceil(BITS) {
            let range = mask(word, start, end);
            let bits = Marks::of(&mut self.marks).word_mut(word);
            let sent = mask(word, start, nxt) | bits.low;
            // `fresh` is newly reported; `arrived` are class-0 copies newly known to have arrived.
            let fresh = range & sent & !bits.sacked;
            let arrived = if in_class0 { range & mask(word, start, nxt) & bits.provable() } else { 0 };
            if fresh | arrived == 0 {
                continue;
            }
            bits.sacked |= fresh;
            newly += fresh.count_ones();
            if arrived != 0 {
                self.mark_class0_arrived(word, arrived);
            }
            self.unmark_lost(word, fresh);
        }
        self.sacked += newly;
        newly
    }

    /// Returns whether every segment from `start` to before `end` was sent from the tail.
    pub fn all_sent_from_tail(&self, start: Seq, end: Seq) -> bool {
        end <= self.dirty_end
            && (start / BITS..end.div_ceil(BITS)).all(|word| {
                let range = mask(word, start, end);
                self.marks().word(word).low & range == range
            })
    }

    /// Applies a report of a single segment, by far the most common case.
    #[inline(always)]
    fn sack_one(&mut self, seq: Seq, nxt: Seq, in_class0: bool) -> bool {
        let bit = 1u64 << (seq % BITS);
        let marks = Self::with_room(&mut self.marks, self.una, &mut self.dirty_end, seq + 1);
        let bits = marks.word_mut(seq / BITS);
        // Reported before, or never sent. A class-0 report of a known segment can still be evidence.
        if bits.sacked & bit != 0 || (seq >= nxt && bits.low & bit == 0) {
            if in_class0 && seq < nxt && bits.provable() & bit != 0 {
                self.mark_class0_arrived(seq / BITS, bit);
            }
            return false;
        }
        bits.sacked |= bit;
        self.sacked += 1;
        // Without other bits, the counts change by one; otherwise the general functions update them.
        let arrived = in_class0 && seq < nxt && bits.low & bit == 0;
        if (bits.gone | bits.lost | bits.resent) & bit != 0 {
            if arrived {
                self.mark_class0_arrived(seq / BITS, bit);
            }
            self.unmark_lost(seq / BITS, bit);
        } else if arrived {
            bits.gone |= bit;
            self.gone += 1;
            marks.track_arrival(seq);
        }
        true
    }

    /// Unmarks reported segments that were presumed lost: they need no retransmission, and their class-0 copies are not
    /// in flight.
    fn unmark_lost(&mut self, word: Seq, fresh: u64) {
        let bits = Marks::of(&mut self.marks).word_mut(word);
        let spared = fresh & bits.lost;
        self.pending -= (spared & !bits.resent).count_ones();
        self.lost -= spared.count_ones();
        self.gone += spared.count_ones();
        bits.lost &= !spared;
        bits.gone |= spared;
    }

    /// Records that the class-0 copy of `seq`, at or above the cumulative acknowledgment, triggered an acknowledgment.
    /// Returns whether its arrival was not known before.
    pub fn mark_arrived(&mut self, seq: Seq) -> bool {
        self.ensure_room(seq + 1);
        let bit = 1 << (seq % BITS);
        let before = self.gone;
        self.mark_class0_arrived(seq / BITS, bit);
        self.gone > before
    }

    /// Records that the class-0 copies of the segments `arrived` in `word` have left the network.
    fn mark_class0_arrived(&mut self, word: Seq, arrived: u64) {
        let marks = Marks::of(&mut self.marks);
        let bits = marks.word_mut(word);
        self.pending -= (arrived & bits.lost & !bits.resent).count_ones();
        self.lost -= (arrived & bits.lost).count_ones();
        self.resent -= (arrived & bits.resent).count_ones();
        bits.lost &= !arrived;
        bits.resent &= !arrived;
        let mut arrived = arrived & !bits.gone;
        self.gone += arrived.count_ones();
        bits.gone |= arrived;
        // From the highest segment down; the first one below all tracked arrivals ends the search.
        while arrived != 0 {
            let highest = u64::BITS - 1 - arrived.leading_zeros();
            if !marks.track_arrival(word * BITS + Seq::from(highest)) {
                break;
            }
            arrived &= low_bits(highest);
        }
    }

    /// Marks segments lost that three later arrivals have overtaken (IsLost). Returns whether a newly marked segment
    /// awaits retransmission.
    #[inline(always)]
    pub fn detect_losses(&mut self) -> bool {
        let Some(marks) = self.marks.as_ref().filter(|marks| marks.top_len as usize == TRACKED_ARRIVALS) else {
            return false;
        };
        self.mark_lost_below(marks.top[TRACKED_ARRIVALS - 1])
    }

    /// Marks segments lost as [`Scoreboard::detect_losses`] does, with a DupThresh of `threshold`, which is at least 1.
    #[cold]
    pub fn detect_losses_with_threshold(&mut self, threshold: u32) -> bool {
        // Find the arrival of rank `threshold` from above: first its word, then its bit.
        let mut left = threshold;
        for word in (self.una / BITS..self.dirty_end.div_ceil(BITS)).rev() {
            let mut arrived = self.marks().word(word).arrived();
            if arrived.count_ones() < left {
                left -= arrived.count_ones();
                continue;
            }
            for _ in 1..left {
                arrived &= !(1 << (u64::BITS - 1 - arrived.leading_zeros()));
            }
            let lowest = u64::BITS - 1 - arrived.leading_zeros();
            return self.mark_lost_below(word * BITS + Seq::from(lowest));
        }
        false
    }

    /// Returns the number of class-0 segments above `seq` that have arrived.
    #[cold]
    pub fn arrivals_above(&self, seq: Seq) -> u32 {
        let words = (seq / BITS).max(self.una / BITS)..self.dirty_end.div_ceil(BITS);
        words.map(|word| (self.marks().word(word).arrived() & mask(word, seq + 1, Seq::MAX)).count_ones()).sum()
    }

    /// Marks every class-0 segment in flight below `end` lost. Returns whether a newly marked segment awaits
    /// retransmission.
    #[inline(always)]
    fn mark_lost_below(&mut self, end: Seq) -> bool {
        let marks = Marks::of(&mut self.marks);
        let start = marks.lost_edge.max(self.una);
        if end <= start {
            return false;
        }
        marks.ensure_room(self.una, &mut self.dirty_end, end);
        if end - start == 1 && marks.word(start / BITS).gone >> (start % BITS) & 1 == 1 {
            marks.lost_edge = end; // Common case: the next segment in a run of arrivals.
            return false;
        }
        self.mark_lost(start, end)
    }

    #[inline(never)]
    fn mark_lost(&mut self, start: Seq, end: Seq) -> bool {
        let mut marked = 0;
        let marks = Marks::of(&mut self.marks);
        for word in start / BITS..end.div_ceil(BITS) {
            let range = mask(word, start, end);
            let bits = marks.word_mut(word);
            let in_flight = range & !bits.gone & !bits.lost;
            // The receiver holds some of these segments from the tail. They need no retransmission, but have left the
            // network.
            let have = in_flight & bits.sacked;
            let missing = in_flight & !bits.sacked;
            bits.gone |= have;
            bits.lost |= missing;
            self.gone += have.count_ones();
            self.lost += missing.count_ones();
            marked += (missing & !bits.resent).count_ones();
        }
        self.pending += marked;
        marks.lost_edge = end;
        marks.resend_from = marks.resend_from.min(start);
        marks.has_new_losses |= marked > 0;
        marked > 0
    }

    /// Marks all class-0 copies of `seq` lost, so that it awaits retransmission.
    ///
    /// # Panics
    /// If no class-0 copy of `seq` is in flight.
    pub fn mark_segment_lost(&mut self, seq: Seq) {
        let bit = 1u64 << (seq % BITS);
        let marks = Self::with_room(&mut self.marks, self.una, &mut self.dirty_end, seq + 1);
        let bits = marks.word_mut(seq / BITS);
        assert!(
            bits.gone & bit == 0 && (bits.lost & bit == 0 || bits.resent & bit != 0),
            "segment {seq} is not in flight"
        );
        if bits.sacked & bit != 0 {
            // The receiver holds the segment from the tail: its class-0 copies have left the network.
            bits.gone |= bit;
            self.gone += 1;
            return;
        }
        self.resent -= u32::from(bits.resent & bit != 0);
        self.lost += u32::from(bits.lost & bit == 0);
        bits.resent &= !bit;
        bits.lost |= bit;
        self.pending += 1;
        marks.has_new_losses = true;
        marks.resend_from = marks.resend_from.min(seq);
    }

    /// Restores `seq` as in flight after a timeout has marked it lost, because its last copy was sent recently.
    pub fn restore_in_flight(&mut self, seq: Seq, is_retransmission: bool) {
        let bit = 1u64 << (seq % BITS);
        let bits = Marks::of(&mut self.marks).word_mut(seq / BITS);
        if bits.lost & bit == 0 || bits.resent & bit != 0 {
            return;
        }
        self.pending -= 1;
        if is_retransmission {
            bits.resent |= bit;
            self.resent += 1;
        } else {
            bits.lost &= !bit;
            self.lost -= 1;
        }
    }

    /// Marks the oldest outstanding segment lost, regardless of arrivals (NewReno).
    pub fn mark_head_lost(&mut self) {
        let first = self.una;
        let marks = Marks::of(&mut self.marks);
        marks.resend_from = marks.resend_from.min(first);
        if !self.is_resent(first) {
            self.mark_lost_below(first + 1);
        }
    }

    /// Marks all unreported segments below `nxt` lost after a retransmission timeout. With `forget_sacks`, SACK
    /// information is discarded first.
    pub fn time_out(&mut self, nxt: Seq, forget_sacks: bool) {
        self.ensure_room(nxt);
        for word in self.una / BITS..self.dirty_end.div_ceil(BITS) {
            let sent = mask(word, self.una, nxt);
            let bits = Marks::of(&mut self.marks).word_mut(word);
            // After reneging, no reported segment can be assumed to be at the receiver.
            if forget_sacks {
                bits.sacked = 0;
                bits.skipped = 0;
                bits.gone = 0;
            }
            bits.resent = 0;
            bits.gone |= sent & bits.sacked;
            bits.lost = sent & !bits.gone;
        }
        // Earlier arrivals say nothing about the retransmissions that follow.
        self.recount();
        let marks = Marks::of(&mut self.marks);
        marks.top_len = 0;
        marks.lost_edge = nxt;
        (marks.resend_from, marks.resent_end) = (self.una, self.una);
    }

    /// Unmarks all lost segments after a spurious retransmission. Those that were not retransmitted are in flight
    /// again.
    pub fn undo_losses(&mut self) {
        let marks = Marks::of(&mut self.marks);
        for word in self.una / BITS..self.dirty_end.div_ceil(BITS) {
            marks.word_mut(word).lost = 0;
        }
        (self.lost, self.pending) = (0, 0);
        marks.lost_edge = self.una;
        marks.top_len = 0;
    }

    /// Recomputes the counts from the bits.
    fn recount(&mut self) {
        (self.sacked, self.gone, self.lost, self.pending, self.resent, self.skipped) = (0, 0, 0, 0, 0, 0);
        for word in self.una / BITS..self.dirty_end.div_ceil(BITS) {
            let bits = *self.marks().word(word);
            self.sacked += bits.sacked.count_ones();
            self.gone += bits.gone.count_ones();
            self.lost += bits.lost.count_ones();
            self.pending += (bits.lost & !bits.resent).count_ones();
            self.resent += bits.resent.count_ones();
            self.skipped += bits.skipped.count_ones();
        }
    }

    /// Returns the lowest lost segment that awaits retransmission.
    #[inline]
    pub fn next_lost(&mut self) -> Option<Seq> {
        if self.pending == 0 {
            return None;
        }
        let marks = self.marks.as_mut()?;
        let from = marks.resend_from.max(self.una);
        let found = marks.first(from, self.dirty_end, |word| word.lost & !word.resent)?;
        marks.resend_from = found;
        Some(found)
    }

    /// Returns the segment of RFC 6675's NextSeg rule 3: the lowest unreported segment that is above all
    /// retransmissions, below the highest arrival, and not marked lost.
    #[inline(never)]
    pub fn next_by_rule_3(&self) -> Option<Seq> {
        let marks = self.marks();
        if marks.top_len == 0 {
            return None;
        }
        let (from, end) = (marks.resent_end.max(self.una), marks.top[0].min(self.dirty_end));
        marks.first(from, end, |word| !word.sacked & !word.resent & !word.skipped)
    }

    /// Returns the highest unreported segment below `end`, unless its retransmission is in flight.
    pub fn highest_outstanding(&self, end: Seq) -> Option<Seq> {
        if end > self.dirty_end.max(self.una) {
            return Some(end - 1);
        }
        self.highest(end, |word| !word.sacked).filter(|&seq| !self.is_resent(seq))
    }

    /// Returns the highest segment below `end` whose bit is set in `pick`.
    fn highest(&self, end: Seq, pick: impl Fn(&Word) -> u64) -> Option<Seq> {
        if end <= self.una {
            return None;
        }
        (self.una / BITS..end.div_ceil(BITS)).rev().find_map(|word| {
            let found = pick(self.marks().word(word)) & mask(word, self.una, end);
            (found != 0).then(|| word * BITS + (BITS - 1 - Seq::from(found.leading_zeros())))
        })
    }

    /// Records the retransmission of `seq`, which advances HighRxt.
    #[inline(always)]
    pub fn mark_retransmitted(&mut self, seq: Seq) {
        let marks = Self::with_room(&mut self.marks, self.una, &mut self.dirty_end, seq + 1);
        marks.resent_end = marks.resent_end.max(seq + 1);
        Self::mark_resent(marks.word_mut(seq / BITS), seq, &mut self.resent, &mut self.pending);
    }

    /// Records a rescue retransmission or a probe of `seq`, which does not advance HighRxt.
    pub fn mark_rescued(&mut self, seq: Seq) {
        let marks = Self::with_room(&mut self.marks, self.una, &mut self.dirty_end, seq + 1);
        Self::mark_resent(marks.word_mut(seq / BITS), seq, &mut self.resent, &mut self.pending);
    }

    #[inline(always)]
    fn mark_resent(bits: &mut Word, seq: Seq, resent: &mut u32, pending: &mut u32) {
        let bit = 1u64 << (seq % BITS);
        if bits.resent & bit == 0 {
            bits.resent |= bit;
            *resent += 1;
            *pending -= u32::from(bits.lost & bit != 0);
        }
    }

    /// Records that the next new segment `seq` is not sent in class 0, because the receiver already holds it.
    pub fn mark_skipped(&mut self, seq: Seq) {
        self.ensure_room(seq + 1);
        let bit = 1u64 << (seq % BITS);
        let bits = Marks::of(&mut self.marks).word_mut(seq / BITS);
        bits.skipped |= bit;
        bits.gone |= bit;
        self.skipped += 1;
        self.gone += 1;
    }

    /// Records that `seq` was sent from the tail.
    pub fn mark_sent_from_tail(&mut self, seq: Seq) {
        let marks = Self::with_room(&mut self.marks, self.una, &mut self.dirty_end, seq + 1);
        marks.word_mut(seq / BITS).low |= 1 << (seq % BITS);
    }
}

#[cfg(test)]
mod reference;

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream};

    fn block(start: Seq, end: Seq) -> SackBlock {
        SackBlock { start, end }
    }

    #[test]
    fn a_segment_is_lost_after_three_later_arrivals_and_not_after_two() {
        let mut board = Scoreboard::new();
        board.sack(block(1, 3), 10, true);
        assert!(!board.detect_losses());
        board.sack(block(3, 4), 10, true);
        assert!(board.detect_losses());
        assert!(board.head_is_lost());
        assert_eq!(board.next_lost(), Some(0));
        assert_eq!(board.pipe(10), 10 - 3 - 1);
        board.mark_retransmitted(0);
        assert_eq!((board.next_lost(), board.pipe(10)), (None, 7));
        board.advance(4);
        assert_eq!(board.pipe(6), 6);
        assert!(board.is_clean());
    }

    #[test]
    fn a_low_priority_report_is_no_evidence_against_class_0() {
        let mut board = Scoreboard::new();
        for seq in 60..66 {
            board.mark_sent_from_tail(seq);
        }
        board.sack(block(60, 66), 4, false);
        assert!(!board.detect_losses());
        assert_eq!((board.sacked(), board.pipe(4)), (6, 4));
        // A class-0 report of segments that were also sent from the tail is no evidence either.
        board.sack(block(60, 66), 66, true);
        assert!(!board.detect_losses());
    }

    #[test]
    fn a_report_of_segments_that_were_not_sent_does_not_count() {
        let mut board = Scoreboard::new();
        board.mark_sent_from_tail(70);
        assert_eq!(board.sack(block(2, 80), 4, true), 3, "segments 2, 3 and 70");
        assert_eq!(board.sack(block(9, 10), 4, false), 0);
        assert!(
            board.all_sent_from_tail(70, 71) && !board.all_sent_from_tail(69, 71) && !board.all_sent_from_tail(70, 900)
        );
    }

    #[test]
    fn a_segment_that_the_receiver_holds_is_not_retransmitted() {
        let mut board = Scoreboard::new();
        board.mark_sent_from_tail(2);
        board.sack(block(2, 3), 2, false);
        for seq in [5, 6, 7] {
            board.mark_arrived(seq);
        }
        assert!(board.detect_losses());
        let mut resent = Vec::new();
        while let Some(seq) = board.next_lost() {
            board.mark_retransmitted(seq);
            resent.push(seq);
        }
        assert_eq!(resent, [0, 1, 3, 4]);
        assert_eq!(board.pipe(8), 4);
    }

    #[test]
    fn a_timeout_marks_all_unreported_segments_lost() {
        let mut board = Scoreboard::new();
        board.sack(block(3, 5), 8, true);
        board.time_out(8, false);
        assert_eq!(board.pipe(8), 0);
        let mut lost = Vec::new();
        while let Some(seq) = board.next_lost() {
            board.mark_retransmitted(seq);
            lost.push(seq);
        }
        assert_eq!(lost, [0, 1, 2, 5, 6, 7]);
        board.time_out(8, true);
        assert_eq!(board.next_lost(), Some(0));
        assert_eq!(board.sacked(), 0);
    }

    #[test]
    fn segments_are_in_flight_again_after_an_undo() {
        let mut board = Scoreboard::new();
        board.sack(block(2, 5), 6, true);
        board.detect_losses();
        board.mark_retransmitted(0);
        board.undo_losses();
        assert_eq!(board.pipe(6), 6 - 3 + 1);
        assert!(!board.awaits_retransmission());
    }

    #[test]
    fn rule_3_segments_lie_between_the_retransmissions_and_the_highest_arrival() {
        let mut board = Scoreboard::new();
        board.sack(block(1, 4), 9, true);
        board.sack(block(6, 7), 9, true);
        board.detect_losses();
        board.mark_retransmitted(0);
        assert_eq!(board.next_by_rule_3(), Some(4));
        board.mark_retransmitted(4);
        assert_eq!(board.next_by_rule_3(), Some(5));
        assert_eq!(board.highest_outstanding(9), Some(8));
    }

    /// The counters equal a recount of the bits after any sequence of operations.
    #[test]
    fn counters_agree_with_the_bits_after_random_operations() {
        let mut rng = Stream::new(7, Domain::Test, 0);
        for _ in 0..200 {
            let mut board = Scoreboard::new();
            let (mut una, mut nxt) = (0, 20);
            for _ in 0..300 {
                let at = una + rng.below(nxt - una + 1);
                match rng.below(9) {
                    0 => nxt += 1 + rng.below(90),
                    1 => {
                        una = at;
                        board.advance(una);
                    }
                    2 => _ = board.sack(block(at, at + 1 + rng.below(70)), nxt, false),
                    3 => _ = board.sack(block(at, (at + 1 + rng.below(70)).min(nxt)), nxt, true),
                    4 => _ = board.detect_losses(),
                    5 => {
                        if let Some(seq) = board.next_lost() {
                            board.mark_retransmitted(seq);
                        }
                    }
                    6 if at < nxt => _ = board.mark_arrived(at),
                    7 => board.mark_sent_from_tail(nxt + rng.below(100)),
                    _ if rng.below(20) == 0 => board.time_out(nxt, rng.below(2) == 0),
                    _ => {}
                }
                let counted = (board.sacked, board.gone, board.lost, board.pending, board.resent, board.skipped);
                board.recount();
                let recounted = (board.sacked, board.gone, board.lost, board.pending, board.resent, board.skipped);
                assert_eq!(counted, recounted);
                assert!(u64::from(board.pipe((nxt - una) as u32)) <= 2 * (nxt - una));
            }
        }
    }

    #[test]
    fn a_skipped_segment_is_gone_but_no_arrival_at_any_bit_position() {
        for seq in [0, 1, 63, 64, 65, 127, 128, 200] {
            let mut board = Scoreboard::new();
            board.advance(seq);
            board.mark_skipped(seq);
            assert!(board.is_gone(seq) && !board.is_gone(seq + 1), "segment {seq}");
            assert_eq!((board.skipped(), board.gone(), board.arrived_out_of_order()), (1, 1, 0));
            assert_eq!(board.pipe(3), 2);
            board.advance(seq + 1);
            assert_eq!((board.skipped(), board.gone()), (0, 0), "segment {seq}");
        }
    }

    #[test]
    fn rule_3_excludes_a_retransmitted_segment_whose_copy_has_arrived() {
        let mut board = Scoreboard::new();
        board.sack(block(1, 4), 9, true);
        board.sack(block(7, 8), 9, true);
        board.detect_losses();
        board.mark_retransmitted(4);
        assert!(board.mark_arrived(4), "segment 4 is in no SACK block");
        assert_eq!(board.next_by_rule_3(), Some(5));
    }

    #[test]
    fn the_highest_outstanding_segment_is_found_at_any_bit_position() {
        for una in [0, 1, 63, 64, 100, 6_400] {
            let mut board = Scoreboard::new();
            board.advance(una);
            assert_eq!(board.highest_outstanding(una + 150), Some(una + 149), "on a clean scoreboard");
            board.sack(block(una + 70, una + 150), una + 150, true);
            assert_eq!(board.highest_outstanding(una + 150), Some(una + 69));
            assert_eq!(board.highest_outstanding(una + 151), Some(una + 150), "the next new segment");
            board.sack(block(una + 1, una + 70), una + 150, true);
            assert_eq!(board.highest_outstanding(una + 150), Some(una));
            board.mark_retransmitted(una);
            assert_eq!(board.highest_outstanding(una + 150), None, "its retransmission is in flight");
        }
    }
}
