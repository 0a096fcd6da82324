//! HighSpeed TCP: the larger the window, the faster it grows per round trip and the smaller its cut at a loss.
//!
//! Source: Floyd, RFC 3649; the table of its appendix B in the form of Linux 2.6.32 (tcp_highspeed.c): rows of a window
//! and a decrease in 1/256, rounded down. A window that is at most that of row n, counted from 1, grows by n segments
//! per round trip and loses the share of row n. The law needs acknowledgments only.
//!
//! As in Linux, the row is looked up when the window grows after slow start, not at the loss: the first loss, in slow
//! start, takes half of the window. Between rows this rounds a(w) and 1 - b(w) up, while the formulas of section 5 are
//! continuous (a window of 100 grows by 2 instead of 1.8). RFC 3649 uses NewReno for windows of up to 38 segments; so
//! does row 1.
//!
//! Other implementations: the table of the RFC has 73 rows and that of Linux 72, which matters only beyond 89,053
//! segments. Linux 2.6.32 counts acknowledgments (`growth_limit = 1`) instead of segments. ns-3 (TcpHighSpeed) has b(w)
//! in two decimals, looks up the row for a loss by the volume in flight and cuts that, and has 53,667 for 53,677.

use crate::contract::{Ack, Congestion, Cx};
use crate::increase::Increase;
use crate::registry::Controller;
use crate::window::{
    GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START, SLOW_START_LIMIT, WINDOW_VALIDATION, Window, WindowLaw,
    windowed,
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "highspeed",
    summary: "the larger the window, the faster it grows and the less a loss takes",
    source: "RFC 3649; Linux 2.6.32",
    params: &[INITIAL_WINDOW, INITIAL_SSTHRESH, SLOW_START_LIMIT, GROWTH_LIMIT, SLOW_START, WINDOW_VALIDATION],
    wire: None,
    make: &|values, plan| Ok(windowed(HighSpeed::default(), values, plan)),
};

/// The largest window of each row in segments, and the share of it that a loss takes in 1/256.
#[rustfmt::skip]
const ROWS: [(u64, u64); 73] = [
    (38, 128), (118, 112), (221, 104), (347, 98), (495, 93), (663, 89), (851, 86),
    (1058, 83), (1284, 81), (1529, 78), (1793, 76), (2076, 74), (2378, 72), (2699, 71),
    (3039, 69), (3399, 68), (3778, 66), (4177, 65), (4596, 64), (5036, 62), (5497, 61),
    (5979, 60), (6483, 59), (7009, 58), (7558, 57), (8130, 56), (8726, 55), (9346, 54),
    (9991, 53), (10661, 52), (11358, 52), (12082, 51), (12834, 50), (13614, 49), (14424, 48),
    (15265, 48), (16137, 47), (17042, 46), (17981, 45), (18955, 45), (19965, 44), (21013, 43),
    (22101, 43), (23230, 42), (24402, 41), (25618, 41), (26881, 40), (28193, 39), (29557, 39),
    (30975, 38), (32450, 38), (33986, 37), (35586, 36), (37253, 36), (38992, 35), (40808, 35),
    (42707, 34), (44694, 33), (46776, 33), (48961, 32), (51258, 32), (53677, 31), (56230, 30),
    (58932, 30), (61799, 29), (64851, 28), (68113, 28), (71617, 27), (75401, 26), (79517, 26),
    (84035, 25), (89053, 24), (94717, 23),
];

/// The HighSpeed window law.
#[derive(Clone, Copy, Debug, Default)]
pub struct HighSpeed {
    /// The current row of the table, counted from 0.
    row: usize,
    increase: Increase,
}

impl HighSpeed {
    /// Moves to the row of a window of `segments`. The last row is unbounded.
    #[inline]
    fn seek(&mut self, segments: u64) {
        while self.row + 1 < ROWS.len() && segments > ROWS[self.row].0 {
            self.row += 1;
        }
        while self.row > 0 && segments <= ROWS[self.row - 1].0 {
            self.row -= 1;
        }
    }
}

impl WindowLaw for HighSpeed {
    #[inline]
    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        self.seek(window.cwnd / cx.mss_bytes);
        let earned = ack.acked_bytes * (self.row as u64 + 1);
        let price = window.cwnd;
        self.increase.grow(window, earned, price, u64::MAX, cx.mss_bytes);
    }

    /// Returns whole segments; the reduction is rounded down.
    fn cut(&mut self, window: &Window, _flight_bytes: u64, _event: Congestion, cx: &mut Cx<'_>) -> u64 {
        self.increase.forget();
        let segments = window.cwnd / cx.mss_bytes;
        (segments - segments * ROWS[self.row].1 / 256) * cx.mss_bytes
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("row", self.row as f64 + 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 1460;

    /// RFC 3649 section 5, with its default parameters: b(w), and a(w) with p(w) = 0.078 / w^1.2.
    fn formulas(w: f64) -> (f64, f64) {
        let b = 0.5 - 0.4 * libm::log(w / 38.0) / libm::log(83_000.0 / 38.0);
        let p = 0.078 / libm::pow(w, 1.2);
        (b, w * w * p * 2.0 * b / (2.0 - b))
    }

    #[test]
    fn each_row_ends_when_the_formulas_reach_the_next_whole_segment() {
        assert!(ROWS.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1));
        for (row, &(window, decrease)) in ROWS.iter().enumerate() {
            let (b, a) = formulas(window as f64);
            assert!((a - (row as f64 + 1.0)).abs() < 0.05, "row {row}: a({window}) = {a}");
            assert_eq!((b * 256.0 + 1e-9) as u64, decrease, "row {row}: b({window}) = {b}");
        }
    }

    /// Returns the window after one round of acknowledgments and after a subsequent loss, in segments.
    fn round_and_loss(start: u64) -> (u64, u64) {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let mut law = HighSpeed::default();
        let mut window = Window { cwnd: start * MSS, ssthresh: 0 };
        for _ in 0..start {
            law.grow(&mut window, &Ack::in_sequence(MSS), &mut cx);
        }
        let cut = law.cut(&window, 0, Congestion::Loss { flight_bytes: 0 }, &mut cx);
        (window.cwnd / MSS, cut / MSS)
    }

    /// The later acknowledgments of a round find a larger window and add slightly less than a segment in total.
    #[test]
    fn a_round_adds_the_segments_of_the_row_and_a_loss_takes_its_share() {
        // 38 is in row 1: its 37 acknowledgments and the first of the next round pay for a segment.
        assert_eq!(round_and_loss(38), (39, 39 - 39 / 2));
        // Rows 2, 19, 50 and 73: 101 * 112 / 256 = 44.2, 4518 * 64 / 256 = 1129.5, 30,049 * 38 / 256 = 4460.4 and
        // 100,072 * 23 / 256 = 8990.8.
        assert_eq!(round_and_loss(100), (101, 101 - 44));
        assert_eq!(round_and_loss(4_500), (4_518, 4_518 - 1_129));
        assert_eq!(round_and_loss(30_000), (30_049, 30_049 - 4_460));
        assert_eq!(round_and_loss(100_000), (100_072, 100_072 - 8_990));
    }

    #[test]
    fn the_row_follows_the_window_both_ways_except_in_slow_start() {
        let mut law = HighSpeed::default();
        let rows = [38, 39, 118, 119, 89_053, 89_054, 500_000, 119, 118, 38, 1].map(|segments| {
            law.seek(segments);
            law.row + 1
        });
        assert_eq!(rows, [1, 2, 2, 3, 72, 73, 73, 3, 2, 1, 1]);
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let window = Window { cwnd: 20_000 * MSS, ssthresh: 0 };
        let cut = HighSpeed::default().cut(&window, 0, Congestion::Loss { flight_bytes: 0 }, &mut cx);
        assert_eq!(cut, 10_000 * MSS, "the first loss halves the window");
    }
}
