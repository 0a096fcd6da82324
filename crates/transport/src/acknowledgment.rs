//! What comes back to a sender, and the door through which it comes.
//!
//! A peer may say anything. All that an acknowledgment says is in one type, [`Acknowledgment`], which nobody believes;
//! [`Sender::handle_ack`](crate::Sender::handle_ack) checks it once, against what was sent, and what is behind that check can be
//! trusted. RFC 9293 section 3.10.7.4 and RFC 2018 leave it at that an acknowledgment of what was not sent is no news; here it is
//! also an error, so that whoever drives the sender can count it or close the connection.

use crate::scoreboard::Scoreboard;
use crate::segment::{AckSegment, MAX_SACK_BLOCKS, SackBlock};
use sparelane_core::{Dur, Rate, Seq, Time};
use thiserror::Error;

/// All that one acknowledgment says, as it came in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acknowledgment<'a> {
    /// Its numbers and flags.
    pub segment: AckSegment,
    /// What the receiver holds beyond the cumulative acknowledgment, the most recent first (RFC 2018 section 4).
    pub blocks: &'a [SackBlock],
    /// What else it says, if anything.
    pub extras: Option<&'a Extras>,
}

/// What some acknowledgments say besides, for [controllers that ask](sparelane_cc::Needs), and what the host knows when they
/// come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// What the routers allow, echoed.
    pub explicit_rate: Option<Rate>,
    /// How long the segment that caused it was under way.
    pub one_way_delay: Option<Dur>,
    /// When that segment arrived, by the receiver's clock.
    pub received_at: Option<Time>,
    /// How many segments from the cumulative acknowledgment on the receiver takes; without, its window is the configured one.
    pub window_segments: Option<u32>,
    /// What waits in the queue of this host's interface: no word of the peer.
    pub nic_backlog_bytes: u64,
}

impl<'a> Acknowledgment<'a> {
    /// An acknowledgment that says this and nothing else.
    #[inline(always)]
    pub const fn of(segment: AckSegment, blocks: &'a [SackBlock]) -> Acknowledgment<'a> {
        Acknowledgment { segment, blocks, extras: None }
    }
}

/// Why an acknowledgment is refused; nothing of it counts then.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AckError {
    /// It comes before the connection is open, or after its end.
    #[error("an acknowledgment of data on a connection that is not open")]
    NotOpen,
    /// It covers what was never sent.
    #[error("acknowledges all below segment {cumulative}, not all of which were sent; the last was {}", .sent.wrapping_sub(1))]
    NeverSent {
        /// Its cumulative acknowledgment.
        cumulative: Seq,
        /// One past the last segment sent.
        sent: Seq,
    },
    /// It says that it was caused by what was never sent.
    #[error("is caused by segment {trigger}, of {sent} that were sent")]
    CausedByNothing {
        /// The segment that it names.
        trigger: Seq,
        /// One past the last segment sent.
        sent: Seq,
    },
    /// A block that is empty, the wrong way round, or beyond what was sent.
    #[error("reports segments {start} to {end} (exclusive), of {sent} that were sent")]
    Block {
        /// Where it starts.
        start: Seq,
        /// Where it ends.
        end: Seq,
        /// One past the last segment sent.
        sent: Seq,
    },
    /// More blocks than an acknowledgment has room for.
    #[error("reports {count} blocks; at most {MAX_SACK_BLOCKS} are allowed")]
    TooManyBlocks {
        /// How many.
        count: usize,
    },
    /// It tells of a delay, or of a time on the receiver's clock, beyond all bounds.
    #[error("tells of {what} of {ps} ps; at most {most} are allowed")]
    Clock {
        /// Which of the two.
        what: &'static str,
        /// What it says, picoseconds.
        ps: u64,
        /// The most.
        most: u64,
    },
    /// It is of a class in which nothing was sent.
    #[error("is of class {class}, in which nothing was sent")]
    Class {
        /// Its class.
        class: u8,
    },
}

/// An acknowledgment that has been checked against what was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked<'a>(&'a Acknowledgment<'a>);

/// What was sent until now, for the check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    pub(crate) is_open: bool,
    /// One past the last segment that either end of the buffer has sent.
    pub(crate) sent: Seq,
    pub(crate) sends_in_low_classes: bool,
    /// The next segment that class 0 has not sent.
    pub(crate) next: Seq,
    /// What went from the tail.
    pub(crate) board: &'a Scoreboard,
}

impl Known<'_> {
    /// Whether everything below `cumulative` was sent by either end.
    #[inline(always)]
    fn has_sent_all_below(&self, cumulative: Seq) -> bool {
        cumulative <= self.next || (cumulative <= self.sent && self.board.all_went_low(self.next, cumulative))
    }
}

impl<'a> Checked<'a> {
    /// `ack`, if it can be true.
    #[inline(always)]
    pub(crate) fn of(ack: &'a Acknowledgment<'a>, known: Known<'_>) -> Result<Checked<'a>, AckError> {
        let Known { is_open, sent, sends_in_low_classes, .. } = known;
        let AckSegment { cumulative, trigger, class, .. } = ack.segment;
        let is_ordinary =
            is_open && known.has_sent_all_below(cumulative) && trigger < sent && (class == 0 || sends_in_low_classes);
        let blocks_are = ack.blocks.len() <= MAX_SACK_BLOCKS
            && ack.blocks.iter().all(|block| block.start < block.end && block.end <= sent);
        if !(is_ordinary && blocks_are) {
            return Err(why_not(ack, known));
        }
        if let Some(extras) = ack.extras {
            check_clocks(extras)?;
        }
        Ok(Checked(ack))
    }

    /// `ack`, which comes from where nobody lies.
    #[inline(always)]
    pub(crate) const fn unchecked(ack: &'a Acknowledgment<'a>) -> Checked<'a> {
        Checked(ack)
    }

    #[inline(always)]
    pub(crate) fn get(self) -> &'a Acknowledgment<'a> {
        self.0
    }
}

/// The longest one-way delay that anybody may tell of: an hour, clocks that differ included.
const MOST_DELAY_PS: u64 = 3_600_000_000_000_000;

/// The latest time on a receiver's clock: some hundred days. Sums and differences of such times are times.
const LATEST_PS: u64 = u64::MAX / 2;

/// Whether what `extras` say of delays and times can be computed with.
fn check_clocks(extras: &Extras) -> Result<(), AckError> {
    let delay = extras.one_way_delay.map(|delay| ("a delay", delay.as_ps(), MOST_DELAY_PS));
    let time = extras.received_at.map(|at| ("a time", at.as_ps(), LATEST_PS));
    match [delay, time].into_iter().flatten().find(|&(_, ps, most)| ps > most) {
        Some((what, ps, most)) => Err(AckError::Clock { what, ps, most }),
        None => Ok(()),
    }
}

/// Why `ack` is refused.
#[cold]
#[inline(never)]
fn why_not(ack: &Acknowledgment<'_>, known: Known<'_>) -> AckError {
    let sent = known.sent;
    let AckSegment { cumulative, trigger, class, .. } = ack.segment;
    if !known.is_open {
        return AckError::NotOpen;
    }
    if class > 0 && !known.sends_in_low_classes {
        return AckError::Class { class };
    }
    if !known.has_sent_all_below(cumulative) {
        return AckError::NeverSent { cumulative, sent };
    }
    if trigger >= sent {
        return AckError::CausedByNothing { trigger, sent };
    }
    match ack.blocks.iter().find(|block| block.start >= block.end || block.end > sent) {
        Some(&SackBlock { start, end }) => AckError::Block { start, end, sent },
        None => AckError::TooManyBlocks { count: ack.blocks.len() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut AckSegment), blocks: &[(Seq, Seq)], tail: &[Seq]) -> Option<AckError> {
        let mut segment = AckSegment::plain(3, 2);
        change(&mut segment);
        let blocks: Vec<_> = blocks.iter().map(|&(start, end)| SackBlock { start, end }).collect();
        let mut board = Scoreboard::new();
        tail.iter().for_each(|&seq| board.send_low(seq));
        let sends_in_low_classes = !tail.is_empty();
        let sent = if sends_in_low_classes { 20 } else { 10 };
        let known = Known { is_open: segment.class < 8, sent, sends_in_low_classes, next: 10, board: &board };
        Checked::of(&Acknowledgment::of(segment, &blocks), known).err()
    }

    const NO_TAIL: &[Seq] = &[];

    #[test]
    fn what_can_be_true_passes() {
        assert_eq!(refusal(|_| {}, &[(5, 10), (3, 4)], NO_TAIL), None);
        assert_eq!(refusal(|ack| ack.cumulative = 10, &[], NO_TAIL), None);
        assert_eq!(refusal(|ack| (ack.class, ack.trigger) = (2, 19), &[(18, 20)], &[19, 18]), None);
        assert_eq!(refusal(|ack| ack.cumulative = 12, &[], &[10, 11]), None, "the tail has met the head");
    }

    #[test]
    fn delays_and_times_beyond_all_bounds_are_refused() {
        let board = Scoreboard::new();
        let said = |extras: Extras| {
            let known = Known { is_open: true, sent: 10, sends_in_low_classes: false, next: 10, board: &board };
            let ack = Acknowledgment { segment: AckSegment::plain(3, 2), blocks: &[], extras: Some(&extras) };
            Checked::of(&ack, known).err().map(|error| error.to_string())
        };
        let delay = |ps| said(Extras { one_way_delay: Some(Dur::from_ps(ps)), ..Extras::default() });
        let time = |ps| said(Extras { received_at: Some(Time::from_ps(ps)), ..Extras::default() });
        assert_eq!([delay(MOST_DELAY_PS), time(LATEST_PS)], [None, None]);
        let expected = "tells of a delay of 3600000000000001 ps; at most 3600000000000000 are allowed";
        assert_eq!(delay(MOST_DELAY_PS + 1).as_deref(), Some(expected));
        assert!(time(u64::MAX).is_some() && time(LATEST_PS + 1).is_some());
        // Sums and differences of two such times are times.
        assert_eq!(LATEST_PS.checked_mul(2), Some(u64::MAX - 1));
    }

    #[test]
    fn what_cannot_is_refused_with_its_reason() {
        let cases = [
            (
                refusal(|ack| ack.cumulative = 11, &[], NO_TAIL),
                "acknowledges all below segment 11, not all of which were sent; the last was 9",
            ),
            (
                refusal(|ack| ack.cumulative = 13, &[], &[10, 12]),
                "acknowledges all below segment 13, not all of which were sent; the last was 19",
            ),
            (refusal(|ack| ack.trigger = 10, &[], NO_TAIL), "is caused by segment 10, of 10 that were sent"),
            (refusal(|_| {}, &[(5, 11)], NO_TAIL), "reports segments 5 to 11 (exclusive), of 10 that were sent"),
            (refusal(|_| {}, &[(7, 8), (5, 5)], NO_TAIL), "reports segments 5 to 5 (exclusive), of 10 that were sent"),
            (refusal(|_| {}, &[(6, 5)], NO_TAIL), "reports segments 6 to 5 (exclusive), of 10 that were sent"),
            (refusal(|_| {}, &[(5, 6); 5], NO_TAIL), "reports 5 blocks; at most 4 are allowed"),
            (refusal(|_| {}, &[(5, 10); 5], NO_TAIL), "reports 5 blocks; at most 4 are allowed"),
            (refusal(|ack| ack.class = 1, &[], NO_TAIL), "is of class 1, in which nothing was sent"),
            (refusal(|ack| ack.class = 8, &[], NO_TAIL), "an acknowledgment of data on a connection that is not open"),
        ];
        for (refused, message) in cases {
            assert_eq!(refused.map(|error| error.to_string()).as_deref(), Some(message));
        }
    }
}
