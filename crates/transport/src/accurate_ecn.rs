//! Accurate ECN feedback (RFC 9768): the receiver counts marked packets and bytes, and reports the counters in each
//! acknowledgment.
//!
//! The three flags AE, CWR and ECE negotiate on the handshake (section 3.1). After it they carry ACE, the number of
//! marked packets modulo 8 (section 3.2.2). The AccECN option carries the payload bytes of each codepoint of the IP-ECN
//! field modulo 2^24, in one of two orders (section 3.2.3). Both ends of a connection are in this module:
//! [`MarkCounts`] at the receiver, and [`MarkFeedback`] at the sender.
//!
//! Differences from the RFC:
//!
//! - An acknowledgment carries the option with all three counters, unless four SACK blocks leave no room for it. The
//!   RFC permits options on every acknowledgment and requires fewer.
//! - Data flows in one direction. Therefore the flags of data packets always report the same counter (section 3.2.1).
//! - Paths change neither the flags nor the option, and a lost SYN is sent again with the same flags. The tests for
//!   such paths and the fallbacks of sections 3.1.4 and 3.2.2.3 are left out.
//! - Handshakes, retransmissions and acknowledgments are not ECN-capable, as in RFC 3168. The RFC permits both.

use crate::config::Ecn;

/// The IP-ECN field of a packet (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum EcnField {
    /// Not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECN-capable, with a scalable congestion control (RFC 9331).
    Ect1 = 1,
    /// ECN-capable.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

/// The flags AE, CWR and ECE of a TCP header as a number of three bits, AE first.
pub type EcnFlags = u8;

/// The flags of a SYN that requests accurate ECN (section 3.1.1).
pub const SYN_ACCURATE: EcnFlags = 0b111;

/// The flags of a SYN that requests classic ECN (RFC 3168 section 6.1.1).
pub const SYN_CLASSIC: EcnFlags = 0b011;

/// The flags of a SYN-ACK that agrees to classic ECN.
const ANSWER_CLASSIC: EcnFlags = 0b001;

/// The number of values of ACE.
const ACE_VALUES: u64 = 8;

/// The initial number of marked packets (section 3.2.1). With it, ACE is never zero at the start.
const FIRST_PACKETS: u64 = 5;

/// The initial number of bytes with ECT(0), and of those with ECT(1) (section 3.2.1).
const FIRST_ECT_BYTES: u32 = 1;

/// Mask of the counters of bytes.
const BYTES_MASK: u32 = (1 << 24) - 1;

/// ACE of an end that has received no marks.
pub const NO_MARKS: EcnFlags = FIRST_PACKETS as EcnFlags;

/// Marks since the last acknowledgment that cause an acknowledgment (section 3.2.2.5.1).
const MARKS_PER_ACK: u64 = 2;

/// The mean number of segments per acknowledgment from which on eight or more are usual.
const USUAL_STRETCH: u64 = 4;

/// The largest number of segments of one acknowledgment that counts in the mean.
const MAX_STRETCH: u64 = 64;

/// The flags by which the other end of a handshake reports the IP-ECN field of a packet of the handshake (sections
/// 3.1.1 and 3.2.2.1).
pub const fn handshake_flags(field: EcnField) -> EcnFlags {
    match field {
        EcnField::NotEct => 0b010,
        EcnField::Ect1 => 0b011,
        EcnField::Ect0 => 0b100,
        EcnField::Ce => 0b110,
    }
}

/// Returns the answer of a receiver that supports `own` to a SYN with these flags, and the kind of ECN that results
/// (section 3.1.2). The SYN was not ECN-capable.
pub const fn answer(own: Ecn, syn: EcnFlags) -> (EcnFlags, Ecn) {
    match (own, syn) {
        (Ecn::Off, _) => (0, Ecn::Off),
        (Ecn::Accurate, SYN_ACCURATE) => (handshake_flags(EcnField::NotEct), Ecn::Accurate),
        // A receiver with classic ECN ignores the flag AE.
        (_, SYN_ACCURATE | SYN_CLASSIC) => (ANSWER_CLASSIC, Ecn::Classic),
        _ => (0, Ecn::Off),
    }
}

/// Returns the kind of ECN that results for a sender whose SYN requested accurate ECN, from the flags of the SYN-ACK
/// (section 3.1.2, table 2).
pub const fn agreed(answer: EcnFlags) -> Ecn {
    match answer {
        0b010 | 0b011 | 0b100 | 0b110 => Ecn::Accurate,
        // 101 comes from servers with the former ECN nonce.
        0b001 | 0b101 => Ecn::Classic,
        // 111 comes from servers that reflect reserved flags.
        _ => Ecn::Off,
    }
}

/// The order of the counters in an AccECN option (section 3.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterOrder {
    /// ECT(0), CE, ECT(1): option kind 172.
    Ect0First,
    /// ECT(1), CE, ECT(0): option kind 174.
    Ect1First,
}

/// An AccECN option: payload bytes that arrived with each codepoint, modulo 2^24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccEcnOption {
    /// The order on the wire. The codepoint of the last unmarked data comes first.
    pub order: CounterOrder,
    /// Bytes with ECT(0), plus one.
    pub ect0_bytes: u32,
    /// Bytes with CE.
    pub ce_bytes: u32,
    /// Bytes with ECT(1), plus one.
    pub ect1_bytes: u32,
}

impl AccEcnOption {
    /// The length of the option in bytes.
    pub const LENGTH: usize = 11;

    /// Returns the bytes of the option: kind, length, and three counters of 24 bits.
    pub fn to_bytes(&self) -> [u8; AccEcnOption::LENGTH] {
        let AccEcnOption { ect0_bytes, ce_bytes, ect1_bytes, .. } = *self;
        let (kind, counters) = match self.order {
            CounterOrder::Ect0First => (172, [ect0_bytes, ce_bytes, ect1_bytes]),
            CounterOrder::Ect1First => (174, [ect1_bytes, ce_bytes, ect0_bytes]),
        };
        let mut bytes = [0; AccEcnOption::LENGTH];
        (bytes[0], bytes[1]) = (kind, AccEcnOption::LENGTH as u8);
        for (place, counter) in bytes[2..].chunks_exact_mut(3).zip(counters) {
            place.copy_from_slice(&counter.to_be_bytes()[1..]);
        }
        bytes
    }

    /// Reads an option; `None` if `bytes` are not an AccECN option with three counters.
    pub fn from_bytes(bytes: &[u8]) -> Option<AccEcnOption> {
        let (&[kind, length], counters) = bytes.split_first_chunk()?;
        if usize::from(length) != AccEcnOption::LENGTH || bytes.len() != AccEcnOption::LENGTH {
            return None;
        }
        let at = |place: usize| u32::from_be_bytes([0, counters[place], counters[place + 1], counters[place + 2]]);
        let (first, ce_bytes, last) = (at(0), at(3), at(6));
        match kind {
            172 => Some(AccEcnOption { order: CounterOrder::Ect0First, ect0_bytes: first, ce_bytes, ect1_bytes: last }),
            174 => Some(AccEcnOption { order: CounterOrder::Ect1First, ect0_bytes: last, ce_bytes, ect1_bytes: first }),
            _ => None,
        }
    }
}

/// The accurate feedback of one acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccurateEcho {
    /// ACE: the number of marked packets modulo 8.
    pub ace: EcnFlags,
    /// The option, if the acknowledgment has room for it.
    pub option: Option<AccEcnOption>,
}

/// The counters of a receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkCounts {
    /// Marked packets (r.cep).
    packets: u64,
    ect0_bytes: u32,
    ce_bytes: u32,
    ect1_bytes: u32,
    order: CounterOrder,
    /// Marked packets since the last acknowledgment.
    unreported: u64,
    last_was_marked: bool,
}

impl MarkCounts {
    /// Creates the counters of a new connection.
    pub(crate) const fn new() -> MarkCounts {
        MarkCounts {
            packets: FIRST_PACKETS,
            ect0_bytes: FIRST_ECT_BYTES,
            ce_bytes: 0,
            ect1_bytes: FIRST_ECT_BYTES,
            order: CounterOrder::Ect0First,
            unreported: 0,
            last_was_marked: false,
        }
    }

    /// Counts `packets` that arrived with this field and `payload_bytes` in all. Returns true if their acknowledgment
    /// must not be delayed: at the first mark after unmarked data, and at every second mark (section 3.2.2.5.1).
    pub(crate) fn count(&mut self, field: EcnField, packets: u64, payload_bytes: u32) -> bool {
        let add = |counter: &mut u32| *counter = counter.wrapping_add(payload_bytes) & BYTES_MASK;
        match field {
            EcnField::NotEct => {}
            EcnField::Ect0 => {
                add(&mut self.ect0_bytes);
                self.order = CounterOrder::Ect0First;
            }
            EcnField::Ect1 => {
                add(&mut self.ect1_bytes);
                self.order = CounterOrder::Ect1First;
            }
            EcnField::Ce => {
                add(&mut self.ce_bytes);
                self.packets += packets;
                self.unreported += packets;
            }
        }
        let is_marked = field == EcnField::Ce;
        let is_first = is_marked && !self.last_was_marked;
        self.last_was_marked = is_marked;
        is_first || self.unreported >= MARKS_PER_ACK
    }

    /// Returns the feedback of the next acknowledgment. `has_room` is false if the option does not fit.
    pub(crate) fn report(&mut self, has_room: bool) -> AccurateEcho {
        self.unreported = 0;
        let MarkCounts { order, ect0_bytes, ce_bytes, ect1_bytes, .. } = *self;
        let option = has_room.then_some(AccEcnOption { order, ect0_bytes, ce_bytes, ect1_bytes });
        AccurateEcho { ace: (self.packets % ACE_VALUES) as EcnFlags, option }
    }
}

/// Marks that an acknowledgment reports for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
}

/// The copies of the receiver's counters at a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkFeedback {
    /// Marked packets (s.cep).
    packets: u64,
    /// Marked bytes modulo 2^24 (s.ceb).
    ce_bytes: u32,
    /// Moving average of the segments that an acknowledgment newly acknowledges, times eight.
    usual_times_8: u64,
}

impl MarkFeedback {
    /// Creates the counters of a new connection.
    pub(crate) const fn new() -> MarkFeedback {
        MarkFeedback { packets: FIRST_PACKETS, ce_bytes: 0, usual_times_8: 8 }
    }

    /// Returns the number of new marks, of which `least` is the smallest, without an option. It is larger only if an
    /// acknowledgment of eight or more segments is unusual for the connection: others were lost then, and ACE may have
    /// wrapped. As many segments as ACE permits then count as marked (appendix A.2.1). As long as none is lost, ACE
    /// cannot wrap, because every second mark causes an acknowledgment. Linux judges by such an average, too.
    fn without_option(&mut self, least: u64, delivered: u64) -> u64 {
        let is_usual = self.usual_times_8 >= 8 * USUAL_STRETCH;
        self.usual_times_8 += delivered.min(MAX_STRETCH);
        self.usual_times_8 -= self.usual_times_8 / 8;
        if delivered < ACE_VALUES || is_usual {
            least
        } else {
            delivered - (delivered.wrapping_sub(least) % ACE_VALUES)
        }
    }

    /// Updates the counters with the feedback of an acknowledgment that is not older than the last one, and that newly
    /// acknowledges `delivered` segments of at most `mss_bytes`. Returns the new marks.
    ///
    /// With the option, the marked bytes are exact, and they tell how often ACE has wrapped.
    pub(crate) fn update(&mut self, echo: &AccurateEcho, delivered: u64, mss_bytes: u64) -> Marks {
        let least = u64::from(echo.ace).wrapping_sub(self.packets) % ACE_VALUES;
        let Some(option) = echo.option else {
            let segments = self.without_option(least, delivered);
            self.packets += segments;
            let bytes = segments * mss_bytes;
            self.ce_bytes = self.ce_bytes.wrapping_add(bytes as u32) & BYTES_MASK;
            return Marks { segments, bytes };
        };
        let bytes = option.ce_bytes.wrapping_sub(self.ce_bytes) & BYTES_MASK;
        // The counter went back. The estimates without an option were too high, or acknowledgments changed their order.
        if bytes > BYTES_MASK / 2 {
            return Marks::default();
        }
        self.ce_bytes = option.ce_bytes;
        let bytes = u64::from(bytes);
        // Short segments make the quotient too small, so the number is rounded up to the next one that ACE permits.
        let from_bytes = bytes.div_ceil(mss_bytes);
        let segments = from_bytes + least.wrapping_sub(from_bytes) % ACE_VALUES;
        self.packets += segments;
        Marks { segments, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EcnField::{Ce, Ect0, Ect1, NotEct};

    const MSS: u64 = 1000;

    #[test]
    fn the_answer_and_its_reading_agree() {
        for (own, result) in [(Ecn::Accurate, Ecn::Accurate), (Ecn::Classic, Ecn::Classic), (Ecn::Off, Ecn::Off)] {
            let (flags, receivers) = answer(own, SYN_ACCURATE);
            assert_eq!((receivers, agreed(flags)), (result, result));
        }
        assert_eq!(answer(Ecn::Accurate, SYN_CLASSIC), (0b001, Ecn::Classic));
        assert_eq!(answer(Ecn::Accurate, 0), (0, Ecn::Off));
    }

    /// RFC 9768 section 3.1.2, table 2.
    #[test]
    fn every_answer_has_a_meaning() {
        let kinds = (0..8).map(agreed).collect::<Vec<_>>();
        let (off, classic, accurate) = (Ecn::Off, Ecn::Classic, Ecn::Accurate);
        assert_eq!(kinds, [off, classic, accurate, accurate, accurate, classic, accurate, off]);
    }

    #[test]
    fn the_flags_of_a_handshake_report_the_field_of_its_packets() {
        assert_eq!([NotEct, Ect1, Ect0, Ce].map(handshake_flags), [0b010, 0b011, 0b100, 0b110]);
    }

    #[test]
    fn counters_begin_at_five_packets_and_one_byte() {
        let echo = MarkCounts::new().report(true);
        let option = AccEcnOption { order: CounterOrder::Ect0First, ect0_bytes: 1, ce_bytes: 0, ect1_bytes: 1 };
        assert_eq!(echo, AccurateEcho { ace: 5, option: Some(option) });
    }

    #[test]
    fn the_option_has_two_orders_and_reads_as_it_was_written() {
        let option = AccEcnOption {
            order: CounterOrder::Ect0First,
            ect0_bytes: 0x01_0203,
            ce_bytes: 0x04_0506,
            ect1_bytes: 0x07_0809,
        };
        assert_eq!(option.to_bytes(), [172, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let other = AccEcnOption { order: CounterOrder::Ect1First, ..option };
        assert_eq!(other.to_bytes(), [174, 11, 7, 8, 9, 4, 5, 6, 1, 2, 3]);
        for option in [option, other] {
            assert_eq!(AccEcnOption::from_bytes(&option.to_bytes()), Some(option));
        }
        assert_eq!(AccEcnOption::from_bytes(&[172, 2]), None);
        assert_eq!(AccEcnOption::from_bytes(&[173, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn the_last_unmarked_codepoint_comes_first() {
        let mut counts = MarkCounts::new();
        let mut order_after = |field| {
            counts.count(field, 1, 100);
            counts.report(true).option.map(|option| option.order)
        };
        assert_eq!(order_after(Ect1), Some(CounterOrder::Ect1First));
        assert_eq!(order_after(Ce), Some(CounterOrder::Ect1First));
        assert_eq!(order_after(Ect0), Some(CounterOrder::Ect0First));
        assert_eq!(order_after(NotEct), Some(CounterOrder::Ect0First));
    }

    #[test]
    fn the_first_mark_and_every_second_one_are_urgent() {
        let mut counts = MarkCounts::new();
        assert!(!counts.count(Ect1, 1, 100));
        assert!(counts.count(Ce, 1, 100), "the first mark");
        counts.report(true);
        assert!(!counts.count(Ce, 1, 100));
        assert!(counts.count(Ce, 1, 100), "the second mark since the last acknowledgment");
        counts.report(true);
        assert!(!counts.count(Ect1, 1, 100));
        assert!(counts.count(Ce, 1, 100), "a mark after unmarked data");
    }

    /// Sends `packets` with these marks, with an acknowledgment for every `per_ack` of them.
    fn transfer(marks: impl Fn(u64) -> bool, packets: u64, per_ack: u64, has_room: bool) -> (Marks, Marks) {
        let (mut counts, mut feedback) = (MarkCounts::new(), MarkFeedback::new());
        let (mut sent, mut seen) = (Marks::default(), Marks::default());
        for packet in 0..packets {
            let is_marked = marks(packet);
            counts.count(if is_marked { Ce } else { Ect1 }, 1, MSS as u32);
            if is_marked {
                (sent.segments, sent.bytes) = (sent.segments + 1, sent.bytes + MSS);
            }
            if (packet + 1) % per_ack == 0 {
                let new = feedback.update(&counts.report(has_room), per_ack, MSS);
                (seen.segments, seen.bytes) = (seen.segments + new.segments, seen.bytes + new.bytes);
            }
        }
        (sent, seen)
    }

    #[test]
    fn up_to_seven_segments_per_acknowledgment_ace_alone_is_exact() {
        for per_ack in 1..=7 {
            let (sent, seen) = transfer(|packet| packet % 3 != 0, 5 * 7 * 6 * 4 * 3, per_ack, false);
            assert_eq!(sent, seen, "{per_ack}");
        }
    }

    /// ACE and the counter of bytes wrap many times: 40,000 packets of 1000 bytes are 2.4 times 2^24 bytes.
    #[test]
    fn with_the_option_any_number_of_segments_per_acknowledgment_is_exact() {
        for per_ack in [1, 2, 8, 64, 1000] {
            let (sent, seen) = transfer(|packet| packet % 5 != 0, 40_000, per_ack, true);
            assert_eq!(sent, seen, "{per_ack}");
        }
    }

    /// Acknowledgments of 16 segments follow a loss of acknowledgments, and then become usual.
    #[test]
    fn without_the_option_a_possible_wrap_counts_as_one_unless_large_acknowledgments_are_usual() {
        let (mut counts, mut feedback) = (MarkCounts::new(), MarkFeedback::new());
        let mut report = |feedback: &mut MarkFeedback, segments: u64, marked: u64| {
            (0..segments).for_each(|segment| {
                counts.count(if segment < marked { Ce } else { Ect1 }, 1, MSS as u32);
            });
            feedback.update(&counts.report(false), segments, MSS).segments
        };
        for _ in 0..20 {
            assert_eq!(report(&mut feedback, 1, 1), 1);
        }
        assert_eq!(report(&mut feedback, 16, 3), 11, "three marks of 16 may as well be eleven");
        for _ in 0..5 {
            report(&mut feedback, 16, 0);
        }
        assert_eq!([report(&mut feedback, 16, 0), report(&mut feedback, 16, 2)], [0, 2]);
    }

    #[test]
    fn an_option_corrects_an_estimate_that_was_too_high() {
        let (mut counts, mut feedback) = (MarkCounts::new(), MarkFeedback::new());
        for _ in 0..16 {
            counts.count(Ect1, 1, MSS as u32);
        }
        counts.count(Ce, 1, MSS as u32);
        assert_eq!(feedback.update(&counts.report(false), 17, MSS).segments, 17);
        // The exact counter is lower, which gives no new marks until it has caught up.
        counts.count(Ce, 1, MSS as u32);
        assert_eq!(feedback.update(&counts.report(true), 1, MSS), Marks::default());
    }

    #[test]
    fn short_marked_segments_count_as_segments() {
        let (mut counts, mut feedback) = (MarkCounts::new(), MarkFeedback::new());
        for _ in 0..3 {
            counts.count(Ce, 1, 10);
        }
        assert_eq!(feedback.update(&counts.report(true), 3, MSS), Marks { segments: 3, bytes: 30 });
    }
}
