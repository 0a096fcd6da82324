//! The monitor of a flow: bytes in flight and losses of each lower class, and the flow's qlog.
//!
//! A monitor exists only while telemetry is enabled, so that other flows do not pay for it.

use super::MAX_CLASSES;
use sparelane_core::{Seq, Time};
use sparelane_transport::Sender;
use sparelane_transport::qlog::{Events, Extent};
use std::collections::VecDeque;

/// The maximum number of segments of one class that are tracked; beyond it the oldest are forgotten, as if they had
/// arrived.
const MAX_IN_FLIGHT: usize = 1 << 16;

/// The maximum distance from the oldest segment in flight at which an acknowledged one is looked for.
const FURTHEST_OVERTAKER: usize = 4096;

/// One lower class of a flow. Segments of a class arrive in the order of sending, so a segment that a later one of its
/// class overtakes counts as lost.
#[derive(Clone, Debug, Default)]
pub struct ClassMonitor {
    in_flight: VecDeque<(Seq, u32)>,
    in_flight_bytes: u64,
    lost: u64,
}

impl ClassMonitor {
    fn on_sent(&mut self, segment: Seq, bytes: u32) {
        if self.in_flight.len() >= MAX_IN_FLIGHT {
            self.pop();
        }
        self.in_flight.push_back((segment, bytes));
        self.in_flight_bytes += u64::from(bytes);
    }

    fn on_arrived(&mut self, segment: Seq) {
        let Some(place) = self.in_flight.iter().take(FURTHEST_OVERTAKER).position(|(sent, _)| *sent == segment) else {
            return;
        };
        (0..=place).for_each(|_| self.pop());
        self.lost += place as u64;
    }

    fn pop(&mut self) {
        if let Some((_, bytes)) = self.in_flight.pop_front() {
            self.in_flight_bytes -= u64::from(bytes);
        }
    }

    /// Forgets segments that are acknowledged in sequence.
    fn forget_acknowledged(&mut self, acknowledged: Seq) {
        self.in_flight.retain(|(segment, _)| *segment >= acknowledged);
        self.in_flight_bytes = self.in_flight.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
    }
}

/// The monitor of a flow that is sent.
#[derive(Debug, Default)]
pub struct Monitor {
    /// The lower classes. Class 0 stays unused: the sender itself tracks it.
    classes: [ClassMonitor; MAX_CLASSES],
    log: Option<Log>,
}

/// The qlog of a flow in either direction; records accumulate until they are taken.
#[derive(Debug)]
pub struct Log {
    events: Events,
    text: String,
}

impl Log {
    pub(crate) fn new(group: &str, stream: u32) -> Log {
        Log { events: Events::grouped(group, stream), text: String::new() }
    }

    pub(crate) fn on_received(&mut self, now: Time, extent: Extent) {
        let text = &mut self.text;
        self.events.on_received(now, extent, &mut |record| text.push_str(record));
    }

    pub(crate) fn take(&mut self, into: &mut String) {
        into.push_str(&self.text);
        self.text.clear();
    }
}

impl Monitor {
    pub(crate) fn new(log: Option<Log>) -> Monitor {
        Monitor { classes: Default::default(), log }
    }

    pub(crate) fn on_sent(&mut self, now: Time, class: u8, segment: Seq, resent: bool, extent: Extent) {
        if class > 0 {
            self.classes[usize::from(class)].on_sent(segment, extent.wire_bytes);
        }
        if let Some(Log { events, text }) = &mut self.log {
            events.on_sent(now, segment as u32, resent, extent, &mut |record| text.push_str(record));
        }
    }

    pub(crate) fn on_acknowledged(&mut self, now: Time, class: u8, cumulative: Seq, trigger: Seq, wire_bytes: u32) {
        if class > 0 {
            self.classes[usize::from(class)].on_arrived(trigger);
        }
        if let Some(Log { events, text }) = &mut self.log {
            let mut put = |record: &str| text.push_str(record);
            events.on_acknowledged(now, cumulative as u32, trigger as u32, wire_bytes, &mut put);
        }
    }

    pub(crate) fn on_metrics(&mut self, now: Time, sender: &Sender) {
        if let Some(Log { events, text }) = &mut self.log {
            events.on_metrics(now, &mut |put| trace(sender, put), &mut |record| text.push_str(record));
        }
    }

    pub(crate) fn forget_acknowledged(&mut self, acknowledged: Seq) {
        self.classes.iter_mut().for_each(|class| class.forget_acknowledged(acknowledged));
    }

    /// Returns the wire bytes in flight and the number of lost segments of a lower class.
    pub fn class(&self, class: usize) -> (u64, u64) {
        self.classes.get(class).map_or((0, 0), |class| (class.in_flight_bytes, class.lost))
    }

    pub(crate) fn take_log(&mut self, into: &mut String) {
        if let Some(log) = &mut self.log {
            log.take(into);
        }
    }
}

/// Reports the sender's variables, with the simulator's names for them.
pub(crate) fn trace(sender: &Sender, put: &mut dyn FnMut(&'static str, f64)) {
    sender.controller().trace(put);
    put("in_flight_bytes", sender.in_flight_bytes() as f64);
    if let Some(srtt) = sender.srtt() {
        put("srtt_s", srtt.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overtaken_segment_counts_as_lost_and_not_as_in_flight() {
        let mut monitor = Monitor::new(None);
        for segment in (90..100).rev() {
            monitor.on_sent(Time::ZERO, 2, segment, false, Extent { wire_bytes: 1000, ..Extent::default() });
        }
        monitor.on_acknowledged(Time::ZERO, 2, 0, 99, 0);
        assert_eq!(monitor.class(2), (9000, 0));
        monitor.on_acknowledged(Time::ZERO, 2, 0, 96, 0);
        assert_eq!(monitor.class(2), (6000, 2));
        monitor.on_acknowledged(Time::ZERO, 2, 0, 98, 0);
        assert_eq!((monitor.class(2), monitor.class(1)), ((6000, 2), (0, 0)));
        monitor.forget_acknowledged(93);
        assert_eq!(monitor.class(2), (3000, 2));
    }

    #[test]
    fn an_unacknowledged_class_takes_bounded_memory() {
        let mut class = ClassMonitor::default();
        for segment in 0..2 * MAX_IN_FLIGHT as u64 {
            class.on_sent(segment, 10);
        }
        assert_eq!((class.in_flight.len(), class.in_flight_bytes), (MAX_IN_FLIGHT, 10 * MAX_IN_FLIGHT as u64));
    }
}
