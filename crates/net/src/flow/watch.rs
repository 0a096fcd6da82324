//! What is kept about a flow that somebody watches: how each class of priority fares, and its qlog. A flow that nobody watches has
//! none of this.

use super::MAX_CLASSES;
use sparelane_core::{Seq, Time};
use sparelane_transport::Sender;
use sparelane_transport::qlog::{Events, Extent};
use std::collections::VecDeque;

/// The most segments of one class of which is known that they are under way; the oldest are forgotten, as if they had arrived.
const MOST_UNDER_WAY: usize = 1 << 16;

/// So far behind the oldest that is under way an arrival is looked for.
const FURTHEST_OVERTAKER: usize = 4096;

/// A class of one flow. Segments cross a class in the order in which they were sent, so those that are overtaken within it count
/// as lost.
#[derive(Clone, Debug, Default)]
pub struct ClassWatch {
    under_way: VecDeque<(Seq, u32)>,
    under_way_bytes: u64,
    lost: u64,
}

impl ClassWatch {
    fn on_sent(&mut self, segment: Seq, bytes: u32) {
        if self.under_way.len() >= MOST_UNDER_WAY {
            self.pop();
        }
        self.under_way.push_back((segment, bytes));
        self.under_way_bytes += u64::from(bytes);
    }

    fn on_arrived(&mut self, segment: Seq) {
        let Some(place) = self.under_way.iter().take(FURTHEST_OVERTAKER).position(|(sent, _)| *sent == segment) else {
            return;
        };
        (0..=place).for_each(|_| self.pop());
        self.lost += place as u64;
    }

    fn pop(&mut self) {
        if let Some((_, bytes)) = self.under_way.pop_front() {
            self.under_way_bytes -= u64::from(bytes);
        }
    }

    /// Forgets what is acknowledged in sequence.
    fn settle(&mut self, acknowledged: Seq) {
        self.under_way.retain(|(segment, _)| *segment >= acknowledged);
        self.under_way_bytes = self.under_way.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
    }
}

/// What is kept about a flow that is sent.
#[derive(Debug, Default)]
pub struct Watch {
    /// The lower classes; class 0 is in the sender's own books.
    classes: [ClassWatch; MAX_CLASSES],
    log: Option<Log>,
}

/// The qlog of a flow, in either direction: its events until somebody takes them.
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

impl Watch {
    pub(crate) fn new(log: Option<Log>) -> Watch {
        Watch { classes: Default::default(), log }
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

    pub(crate) fn settle(&mut self, acknowledged: Seq) {
        self.classes.iter_mut().for_each(|class| class.settle(acknowledged));
    }

    /// Of a lower class: bytes on the wire that are under way, and segments that were overtaken within it.
    pub fn class(&self, class: usize) -> (u64, u64) {
        self.classes.get(class).map_or((0, 0), |class| (class.under_way_bytes, class.lost))
    }

    pub(crate) fn take_log(&mut self, into: &mut String) {
        if let Some(log) = &mut self.log {
            log.take(into);
        }
    }
}

/// What the simulator traces of a sender, by the same names.
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
    fn what_is_overtaken_within_its_class_counts_as_lost_and_is_no_longer_under_way() {
        let mut watch = Watch::new(None);
        for segment in (90..100).rev() {
            watch.on_sent(Time::ZERO, 2, segment, false, Extent { wire_bytes: 1000, ..Extent::default() });
        }
        watch.on_acknowledged(Time::ZERO, 2, 0, 99, 0);
        assert_eq!(watch.class(2), (9000, 0));
        watch.on_acknowledged(Time::ZERO, 2, 0, 96, 0);
        assert_eq!(watch.class(2), (6000, 2));
        watch.on_acknowledged(Time::ZERO, 2, 0, 98, 0);
        assert_eq!((watch.class(2), watch.class(1)), ((6000, 2), (0, 0)));
        watch.settle(93);
        assert_eq!(watch.class(2), (3000, 2));
    }

    #[test]
    fn a_class_that_is_never_acknowledged_takes_bounded_memory() {
        let mut class = ClassWatch::default();
        for segment in 0..2 * MOST_UNDER_WAY as u64 {
            class.on_sent(segment, 10);
        }
        assert_eq!((class.under_way.len(), class.under_way_bytes), (MOST_UNDER_WAY, 10 * MOST_UNDER_WAY as u64));
    }
}
