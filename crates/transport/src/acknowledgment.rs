//! Acknowledgments, and their validation against the data that was sent.
//!
//! A peer can send arbitrary values. [`Acknowledgment`] holds the unvalidated fields of one acknowledgment.
//! [`Sender::handle_ack`](crate::Sender::handle_ack) validates them once; all later code can rely on them. RFC 9293
//! section 3.10.7.4 and RFC 2018 only require the sender to ignore an acknowledgment of data that was never sent. Here
//! it is also an error, so that the caller can count it or close the connection.

use crate::accurate_ecn::AccurateEcho;
use crate::scoreboard::Scoreboard;
use crate::segment::{AckSegment, MAX_SACK_BLOCKS, SackBlock};
use sparelane_core::{Dur, Rate, Seq, Time};
use thiserror::Error;

/// One acknowledgment as received, before validation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acknowledgment<'a> {
    /// The sequence numbers and flags.
    pub segment: AckSegment,
    /// The SACK blocks, most recent first (RFC 2018 section 4).
    pub blocks: &'a [SackBlock],
    /// The optional fields, if the acknowledgment carries any.
    pub extras: Option<&'a Extras>,
}

/// Optional fields of an acknowledgment, for [controllers that need them](sparelane_cc::Needs), and the state of the
/// host on its arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// The rate that the routers grant, echoed by the receiver.
    pub explicit_rate: Option<Rate>,
    /// The one-way delay of the segment that triggered the acknowledgment.
    pub one_way_delay: Option<Dur>,
    /// The arrival time of that segment on the receiver's clock.
    pub received_at: Option<Time>,
    /// The time that the triggering segment and this acknowledgment spent inside the two hosts. This value is known in
    /// a simulation only.
    pub host_delay: Option<Dur>,
    /// The accurate ECN feedback (RFC 9768), on connections that have agreed to it.
    pub accurate_ecn: Option<AccurateEcho>,
    /// The advertised receive window in segments, counted from the cumulative acknowledgment. With `None`, the
    /// configured window applies.
    pub window_segments: Option<u32>,
    /// Bytes queued at this host's own interface. This value is measured locally and does not come from the peer.
    pub nic_backlog_bytes: u64,
}

impl Extras {
    /// No optional fields.
    pub(crate) const NONE: Extras = Extras {
        explicit_rate: None,
        one_way_delay: None,
        received_at: None,
        host_delay: None,
        accurate_ecn: None,
        window_segments: None,
        nic_backlog_bytes: 0,
    };
}

impl<'a> Acknowledgment<'a> {
    /// Returns an acknowledgment without optional fields.
    #[inline(always)]
    pub const fn of(segment: AckSegment, blocks: &'a [SackBlock]) -> Acknowledgment<'a> {
        Acknowledgment { segment, blocks, extras: None }
    }
}

/// The reason why an acknowledgment is rejected. A rejected acknowledgment changes nothing.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AckError {
    /// The connection is not established yet, or has ended.
    #[error("an acknowledgment of data on a connection that is not open")]
    NotOpen,
    /// The cumulative acknowledgment covers a segment that was never sent.
    #[error(
        "acknowledges segments below {cumulative}, some of which were never sent; no segment from {sent} on was sent"
    )]
    NeverSent {
        /// The cumulative acknowledgment.
        cumulative: Seq,
        /// One past the last segment sent.
        sent: Seq,
    },
    /// The segment that triggered the acknowledgment was never sent.
    #[error("names segment {trigger} as its trigger, but no segment from {sent} on was sent")]
    TriggerNeverSent {
        /// The segment that the acknowledgment names as its trigger.
        trigger: Seq,
        /// One past the last segment sent.
        sent: Seq,
    },
    /// A SACK block is empty, reversed, or beyond the last segment sent.
    #[error("carries the invalid SACK block {start} to {end} (exclusive); no segment from {sent} on was sent")]
    Block {
        /// The first segment of the block.
        start: Seq,
        /// One past the last segment of the block.
        end: Seq,
        /// One past the last segment sent.
        sent: Seq,
    },
    /// There are more than [`MAX_SACK_BLOCKS`] SACK blocks.
    #[error("carries {count} SACK blocks; at most {MAX_SACK_BLOCKS} are allowed")]
    TooManyBlocks {
        /// The number of blocks.
        count: usize,
    },
    /// A one-way delay, or a time on the receiver's clock, exceeds its bound.
    #[error("reports a {what} of {ps} ps; at most {most} ps are allowed")]
    Clock {
        /// The name of the field.
        what: &'static str,
        /// The reported value in picoseconds.
        ps: u64,
        /// The largest accepted value in picoseconds.
        most: u64,
    },
    /// No segment was sent in the class of the acknowledgment.
    #[error("has class {class}, in which nothing was sent")]
    Class {
        /// The class.
        class: u8,
    },
}

/// An acknowledgment that was validated against the data sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked<'a>(&'a Acknowledgment<'a>);

/// The part of the sender's state against which an acknowledgment is validated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentState<'a> {
    pub(crate) is_open: bool,
    /// One past the last segment sent, from the head or from the tail of the buffer.
    pub(crate) sent: Seq,
    pub(crate) sends_in_low_classes: bool,
    /// The next segment to be sent in class 0 (SND.NXT).
    pub(crate) next: Seq,
    /// The scoreboard, which records the segments sent from the tail.
    pub(crate) board: &'a Scoreboard,
}

impl SentState<'_> {
    /// Returns whether every segment below `cumulative` was sent, from the head or from the tail.
    #[inline(always)]
    fn has_sent_all_below(&self, cumulative: Seq) -> bool {
        cumulative <= self.next || (cumulative <= self.sent && self.board.all_sent_from_tail(self.next, cumulative))
    }
}

impl<'a> Checked<'a> {
    /// Validates `ack`.
    #[inline(always)]
    pub(crate) fn of(ack: &'a Acknowledgment<'a>, state: SentState<'_>) -> Result<Checked<'a>, AckError> {
        let SentState { is_open, sent, sends_in_low_classes, .. } = state;
        let AckSegment { cumulative, trigger, class, .. } = ack.segment;
        let is_plausible =
            is_open && state.has_sent_all_below(cumulative) && trigger < sent && (class == 0 || sends_in_low_classes);
        let has_valid_blocks = ack.blocks.len() <= MAX_SACK_BLOCKS
            && ack.blocks.iter().all(|block| block.start < block.end && block.end <= sent);
        if !(is_plausible && has_valid_blocks) {
            return Err(rejection_reason(ack, state));
        }
        if let Some(extras) = ack.extras {
            check_clocks(extras)?;
        }
        Ok(Checked(ack))
    }

    /// Accepts `ack` without validation, from a receiver in the same process.
    #[inline(always)]
    pub(crate) const fn unchecked(ack: &'a Acknowledgment<'a>) -> Checked<'a> {
        Checked(ack)
    }

    #[inline(always)]
    pub(crate) fn get(self) -> &'a Acknowledgment<'a> {
        self.0
    }
}

/// The largest one-way delay accepted: an hour, which includes the offset between the two clocks.
const MAX_DELAY_PS: u64 = 3_600_000_000_000_000;

/// The latest time accepted on a receiver's clock: about 107 days. The sum of two such times does not overflow.
const MAX_TIME_PS: u64 = u64::MAX / 2;

/// Checks the delay and the time in `extras` against their bounds, so that later arithmetic cannot overflow.
fn check_clocks(extras: &Extras) -> Result<(), AckError> {
    let delay = extras.one_way_delay.map(|delay| ("one-way delay", delay.as_ps(), MAX_DELAY_PS));
    let time = extras.received_at.map(|at| ("receive time", at.as_ps(), MAX_TIME_PS));
    match [delay, time].into_iter().flatten().find(|&(_, ps, most)| ps > most) {
        Some((what, ps, most)) => Err(AckError::Clock { what, ps, most }),
        None => Ok(()),
    }
}

/// Finds the reason why `ack` is rejected. [`Checked::of`] calls it after one of its conditions failed.
#[cold]
#[inline(never)]
fn rejection_reason(ack: &Acknowledgment<'_>, state: SentState<'_>) -> AckError {
    let sent = state.sent;
    let AckSegment { cumulative, trigger, class, .. } = ack.segment;
    if !state.is_open {
        return AckError::NotOpen;
    }
    if class > 0 && !state.sends_in_low_classes {
        return AckError::Class { class };
    }
    if !state.has_sent_all_below(cumulative) {
        return AckError::NeverSent { cumulative, sent };
    }
    if trigger >= sent {
        return AckError::TriggerNeverSent { trigger, sent };
    }
    match ack.blocks.iter().find(|block| block.start >= block.end || block.end > sent) {
        Some(&SackBlock { start, end }) => AckError::Block { start, end, sent },
        None => AckError::TooManyBlocks { count: ack.blocks.len() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection(change: impl FnOnce(&mut AckSegment), blocks: &[(Seq, Seq)], tail: &[Seq]) -> Option<AckError> {
        let mut segment = AckSegment::plain(3, 2);
        change(&mut segment);
        let blocks: Vec<_> = blocks.iter().map(|&(start, end)| SackBlock { start, end }).collect();
        let mut board = Scoreboard::new();
        tail.iter().for_each(|&seq| board.mark_sent_from_tail(seq));
        let sends_in_low_classes = !tail.is_empty();
        let sent = if sends_in_low_classes { 20 } else { 10 };
        let state = SentState { is_open: segment.class < 8, sent, sends_in_low_classes, next: 10, board: &board };
        Checked::of(&Acknowledgment::of(segment, &blocks), state).err()
    }

    const NO_TAIL: &[Seq] = &[];

    #[test]
    fn a_valid_acknowledgment_is_accepted() {
        assert_eq!(rejection(|_| {}, &[(5, 10), (3, 4)], NO_TAIL), None);
        assert_eq!(rejection(|ack| ack.cumulative = 10, &[], NO_TAIL), None);
        assert_eq!(rejection(|ack| (ack.class, ack.trigger) = (2, 19), &[(18, 20)], &[19, 18]), None);
        assert_eq!(rejection(|ack| ack.cumulative = 12, &[], &[10, 11]), None, "the tail was sent down to the head");
    }

    #[test]
    fn delays_and_times_beyond_their_bounds_are_rejected() {
        let board = Scoreboard::new();
        let rejection = |extras: Extras| {
            let state = SentState { is_open: true, sent: 10, sends_in_low_classes: false, next: 10, board: &board };
            let ack = Acknowledgment { segment: AckSegment::plain(3, 2), blocks: &[], extras: Some(&extras) };
            Checked::of(&ack, state).err().map(|error| error.to_string())
        };
        let delay = |ps| rejection(Extras { one_way_delay: Some(Dur::from_ps(ps)), ..Extras::default() });
        let time = |ps| rejection(Extras { received_at: Some(Time::from_ps(ps)), ..Extras::default() });
        assert_eq!([delay(MAX_DELAY_PS), time(MAX_TIME_PS)], [None, None]);
        let expected = "reports a one-way delay of 3600000000000001 ps; at most 3600000000000000 ps are allowed";
        assert_eq!(delay(MAX_DELAY_PS + 1).as_deref(), Some(expected));
        assert!(time(u64::MAX).is_some() && time(MAX_TIME_PS + 1).is_some());
        // The sum of two such times does not overflow.
        assert_eq!(MAX_TIME_PS.checked_mul(2), Some(u64::MAX - 1));
    }

    #[test]
    fn an_invalid_acknowledgment_is_rejected_with_its_reason() {
        let cases = [
            (
                rejection(|ack| ack.cumulative = 11, &[], NO_TAIL),
                "acknowledges segments below 11, some of which were never sent; no segment from 10 on was sent",
            ),
            (
                rejection(|ack| ack.cumulative = 13, &[], &[10, 12]),
                "acknowledges segments below 13, some of which were never sent; no segment from 20 on was sent",
            ),
            (
                rejection(|ack| ack.trigger = 10, &[], NO_TAIL),
                "names segment 10 as its trigger, but no segment from 10 on was sent",
            ),
            (
                rejection(|_| {}, &[(5, 11)], NO_TAIL),
                "carries the invalid SACK block 5 to 11 (exclusive); no segment from 10 on was sent",
            ),
            (
                rejection(|_| {}, &[(7, 8), (5, 5)], NO_TAIL),
                "carries the invalid SACK block 5 to 5 (exclusive); no segment from 10 on was sent",
            ),
            (
                rejection(|_| {}, &[(6, 5)], NO_TAIL),
                "carries the invalid SACK block 6 to 5 (exclusive); no segment from 10 on was sent",
            ),
            (rejection(|_| {}, &[(5, 6); 5], NO_TAIL), "carries 5 SACK blocks; at most 4 are allowed"),
            (rejection(|_| {}, &[(5, 10); 5], NO_TAIL), "carries 5 SACK blocks; at most 4 are allowed"),
            (rejection(|ack| ack.class = 1, &[], NO_TAIL), "has class 1, in which nothing was sent"),
            (
                rejection(|ack| ack.class = 8, &[], NO_TAIL),
                "an acknowledgment of data on a connection that is not open",
            ),
        ];
        for (refused, message) in cases {
            assert_eq!(refused.map(|error| error.to_string()).as_deref(), Some(message));
        }
    }
}
