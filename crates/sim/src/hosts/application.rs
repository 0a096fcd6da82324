//! The application of a flow that is written in several parts.

use crate::flow::Writes;
use sparelane_core::{Dur, Time};
use sparelane_transport::Sender;

/// The application of one flow: its remaining writes, and the arrival of its first one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Application {
    writes: Writes,
    /// Bytes of the whole flow; `None` for a flow without end.
    size_bytes: Option<u64>,
    written_bytes: u64,
    /// The time at which the receiver held the whole first write, in order.
    pub(crate) first_held: Time,
    /// The least time in which the first write can arrive.
    pub(crate) first_least: Dur,
}

impl Application {
    /// The application of a flow of `size_bytes`, before its first write.
    pub(crate) fn new(writes: Writes, size_bytes: Option<u64>) -> Application {
        Application { writes, size_bytes, written_bytes: 0, first_held: Time::NEVER, first_least: Dur::ZERO }
    }

    /// Bytes of the first write.
    pub(crate) fn first_bytes(&self) -> u64 {
        self.size_bytes.map_or(self.writes.first_bytes, |size| size.min(self.writes.first_bytes))
    }

    fn left_bytes(&self) -> u64 {
        self.size_bytes.map_or(u64::MAX, |size| size - self.written_bytes)
    }

    /// Returns true if `held_bytes` is everything that will ever be written.
    pub(crate) fn is_complete(&self, held_bytes: u64) -> bool {
        self.size_bytes == Some(held_bytes)
    }

    /// Writes the next part. Returns the time until the following write, if there is one.
    pub(crate) fn write(&mut self, sender: &mut Sender) -> Option<Dur> {
        let Writes { first_bytes, then_bytes, every } = self.writes;
        let bytes = if self.written_bytes == 0 { first_bytes } else { then_bytes }.min(self.left_bytes());
        self.written_bytes += bytes;
        sender.write(bytes);
        (self.left_bytes() > 0).then_some(every)
    }

    /// The least time from the flow's start to its end; `None` for a flow without end. `carry` returns the least time
    /// in which the path carries the given number of bytes, and `handshake` is the time before a connection opens. No
    /// write arrives before it was written, and nothing arrives before the connection is open.
    pub(crate) fn least(&self, handshake: Dur, carry: impl Fn(u64) -> Dur) -> Option<Dur> {
        let Writes { first_bytes, then_bytes, every } = self.writes;
        let size = self.size_bytes?;
        let more = size.saturating_sub(first_bytes).div_ceil(then_bytes);
        // The end is the latest over all writes of the time of a write plus the time for all bytes from there on.
        // Between the second write and the last, this grows linearly, so the two ends suffice.
        let from = |write: u64| {
            let left = size - first_bytes - (write - 1) * then_bytes;
            every.saturating_mul(write) + carry(left)
        };
        let whole = handshake + carry(size);
        Some(if more == 0 { whole } else { whole.max(from(1)).max(from(more)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITES: Writes = Writes { first_bytes: 5_000, then_bytes: 1_000, every: Dur::from_ms(10) };

    /// The least time in milliseconds, on a path that takes `per_thousand` ms per thousand bytes, after a handshake of
    /// 7 ms.
    fn least_ms(size_bytes: u64, per_thousand: u64) -> u64 {
        let carry = |bytes: u64| Dur::from_us(bytes * per_thousand);
        let least = Application::new(WRITES, Some(size_bytes)).least(Dur::from_ms(7), carry);
        least.expect("an end").as_ps() / Dur::from_ms(1).as_ps()
    }

    #[test]
    fn a_slow_path_bounds_the_whole_and_a_slow_application_its_last_write() {
        // 37 kB at 100 ms per thousand bytes, and at 1 ms; the 32nd write after the first is at 320 ms.
        assert_eq!(least_ms(37_000, 100), 3_707);
        assert_eq!(least_ms(37_000, 1), 321);
    }

    /// Data behind a large first write may take longer than the first write alone.
    #[test]
    fn every_write_waits_for_its_time() {
        let writes = Writes { then_bytes: 1_000_000, every: Dur::from_secs(9), ..WRITES };
        let least = Application::new(writes, Some(1_005_000)).least(Dur::ZERO, Dur::from_us);
        assert_eq!(least, Some(Dur::from_secs(10)));
    }

    #[test]
    fn a_flow_that_fits_the_first_write_takes_as_long_as_one_write() {
        assert_eq!(least_ms(4_000, 1), 11);
        assert_eq!(Application::new(WRITES, Some(4_000)).first_bytes(), 4_000);
    }

    #[test]
    fn a_flow_without_end_has_no_least_time_and_is_never_complete() {
        let endless = Application::new(WRITES, None);
        assert_eq!((endless.least(Dur::ZERO, |_| Dur::ZERO), endless.first_bytes()), (None, 5_000));
        assert!(!endless.is_complete(u64::MAX));
    }
}
