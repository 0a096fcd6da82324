//! The application of a receiver that reads more slowly than data may arrive, and the window that it leaves.
//!
//! It reads one segment after another, each in the same time; a short segment counts as a full one. Segments that it
//! has not read yet, and those behind a gap, occupy the receive buffer. Acknowledgments advertise the rest as the
//! window (RFC 9293 section 3.8.6).

use sparelane_core::{Dur, Seq, Time};

/// The application of one receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    /// The time in which it reads a segment.
    segment_time: Dur,
    buffer_segments: Seq,
    /// The number of segments that it has read.
    read: Seq,
    /// The number of segments that have arrived in sequence.
    arrived: Seq,
    /// The time at which it has read the next segment; it has no meaning if all are read.
    reads_next_at: Time,
    /// One past the last segment that was advertised.
    advertised: Seq,
    /// The live entry of its timer.
    pub(crate) timer: Time,
}

impl Reader {
    /// The application that reads a segment in `segment_time`, from a buffer of this many segments.
    pub(crate) fn new(segment_time: Dur, buffer_segments: Seq) -> Reader {
        Reader {
            segment_time,
            buffer_segments,
            read: 0,
            arrived: 0,
            reads_next_at: Time::NEVER,
            advertised: buffer_segments,
            timer: Time::NEVER,
        }
    }

    /// Reads until `now`, after the first `arrived` segments have arrived in sequence. Returns the window in segments,
    /// counted from there.
    pub(crate) fn read_until(&mut self, now: Time, arrived: Seq) -> u32 {
        if self.read < self.arrived && self.reads_next_at <= now {
            let since_ps = (now - self.reads_next_at).as_ps();
            let more = (since_ps / self.segment_time.as_ps().max(1) + 1).min(self.arrived - self.read);
            self.read += more;
            self.reads_next_at += self.segment_time.saturating_mul(more);
        }
        if self.read == self.arrived && arrived > self.arrived {
            self.reads_next_at = now + self.segment_time;
        }
        self.arrived = arrived;
        self.window()
    }

    fn window(&self) -> u32 {
        self.buffer_segments.saturating_sub(self.arrived - self.read) as u32
    }

    /// Notes that an acknowledgment advertises the present window.
    pub(crate) fn note_advertised(&mut self) {
        self.advertised = self.advertised.max(self.arrived + Seq::from(self.window()));
    }

    /// Returns true if an update of the window is due now, by the rule of [`Reader::updates_at`].
    pub(crate) fn owes_update(&self) -> bool {
        let known = self.advertised.saturating_sub(self.arrived);
        2 * known <= self.buffer_segments && Seq::from(self.window()) >= (2 * known).max(1)
    }

    /// The time at which the window is to be advertised again without any arrival, unless it is open wide enough. Like
    /// Linux, the receiver does so once the window is twice as large as the sender knows, but only if the sender knows
    /// of at most half the buffer.
    pub(crate) fn updates_at(&self) -> Option<Time> {
        let known = self.advertised.saturating_sub(self.arrived);
        if self.read == self.arrived || 2 * known > self.buffer_segments {
            return None;
        }
        let lacking = (2 * known).max(1).saturating_sub(Seq::from(self.window()));
        // The rest of what has arrived may be too little.
        (lacking <= self.arrived - self.read)
            .then(|| self.reads_next_at + self.segment_time.saturating_mul(lacking.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a segment in 1 ms, from a buffer of 10 segments.
    fn reader() -> Reader {
        Reader::new(Dur::from_ms(1), 10)
    }

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Dur::from_ms(ms)
    }

    #[test]
    fn segments_are_read_one_after_another_and_the_window_is_the_rest_of_the_buffer() {
        let mut reader = reader();
        assert_eq!(reader.read_until(at_ms(0), 4), 6);
        assert_eq!(reader.read_until(at_ms(2), 4), 8);
        assert_eq!(reader.read_until(at_ms(2), 6), 6, "two are read, six have arrived");
        assert_eq!(reader.read_until(at_ms(50), 6), 10);
        assert_eq!(reader.read_until(at_ms(60), 7), 9, "idle time is not made up for");
        assert_eq!(reader.read_until(at_ms(61), 7), 10);
    }

    #[test]
    fn a_closed_window_is_advertised_as_soon_as_a_segment_is_read() {
        let mut reader = reader();
        assert_eq!(reader.read_until(at_ms(0), 10), 0);
        reader.note_advertised();
        assert_eq!(reader.updates_at(), Some(at_ms(1)));
        assert_eq!(reader.read_until(at_ms(1), 10), 1);
        reader.note_advertised();
        assert_eq!(reader.updates_at(), Some(at_ms(2)), "one segment is known, two are twice as many");
        assert_eq!(reader.read_until(at_ms(2), 10), 2);
        reader.note_advertised();
        assert_eq!(reader.updates_at(), Some(at_ms(4)));
    }

    #[test]
    fn a_window_of_more_than_half_the_buffer_is_not_advertised_again() {
        let mut reader = reader();
        reader.read_until(at_ms(0), 4);
        reader.note_advertised();
        assert_eq!(reader.updates_at(), None);
    }

    #[test]
    fn no_update_is_due_if_all_is_read() {
        let mut reader = reader();
        reader.read_until(at_ms(0), 10);
        reader.note_advertised();
        reader.read_until(at_ms(10), 10);
        assert_eq!(reader.updates_at(), None);
    }
}
