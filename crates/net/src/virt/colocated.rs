//! Two ends of a network behind one address, to measure the effect of one on the other.

use super::Endpoint;
use crate::carrier::{Arrival, Datagram};
use sparelane_core::{Dur, Time};

/// The tag of each datagram: its end, and its send time.
const TAG_BYTES: usize = 1 + 8;

/// An event of one of two participants.
#[derive(Clone, Debug)]
pub enum Either<A, B> {
    /// An event of the first.
    First(A),
    /// An event of the second.
    Second(B),
}

/// Two ends of different kinds behind one address. Each datagram is nine bytes longer, for its end and its send time.
#[derive(Debug)]
pub struct Colocated<A, B> {
    first: A,
    second: B,
    delays: Vec<Dur>,
}

impl<A, B> Colocated<A, B> {
    /// Combines two ends.
    pub fn new(first: A, second: B) -> Colocated<A, B> {
        Colocated { first, second, delays: Vec::new() }
    }

    /// The first end.
    pub fn first(&mut self) -> &mut A {
        &mut self.first
    }

    /// The second end.
    pub fn second(&mut self) -> &mut B {
        &mut self.second
    }

    /// The one-way delays of the first end's datagrams, in order of arrival.
    pub fn delays(&self) -> &[Dur] {
        &self.delays
    }
}

impl<A: Endpoint, B: Endpoint> Endpoint for Colocated<A, B> {
    type Event = Either<A::Event, B::Event>;

    fn handle_datagram(&mut self, now: Time, arrival: Arrival, bytes: &[u8]) {
        let Some((tag, bytes)) = bytes.split_at_checked(TAG_BYTES) else { return };
        let (Some(owner), Some(sent)) = (tag.first(), tag.last_chunk::<8>()) else { return };
        if *owner == 0 {
            self.delays.push(now.saturating_since(Time::from_ps(u64::from_be_bytes(*sent))));
            self.first.handle_datagram(now, arrival, bytes);
        } else {
            self.second.handle_datagram(now, arrival, bytes);
        }
    }

    fn handle_timer(&mut self, now: Time) {
        if self.first.next_timer() <= now {
            self.first.handle_timer(now);
        }
        if self.second.next_timer() <= now {
            self.second.handle_timer(now);
        }
    }

    fn next_timer(&self) -> Time {
        self.first.next_timer().min(self.second.next_timer())
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        let first = self.first.poll_event().map(Either::First);
        first.or_else(|| self.second.poll_event().map(Either::Second))
    }

    fn has_events(&self) -> bool {
        self.first.has_events() || self.second.has_events()
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        let first = self.first.poll_transmit(now).map(|datagram| tagged(0, now, datagram));
        first.or_else(|| self.second.poll_transmit(now).map(|datagram| tagged(1, now, datagram)))
    }
}

fn tagged(owner: u8, now: Time, datagram: Datagram) -> Datagram {
    let mut bytes = Vec::with_capacity(datagram.bytes.len() + TAG_BYTES);
    for segment in datagram.segments() {
        bytes.push(owner);
        bytes.extend_from_slice(&now.as_ps().to_be_bytes());
        bytes.extend_from_slice(segment);
    }
    let segment_bytes = datagram.segment_bytes.map(|bytes| bytes + TAG_BYTES);
    Datagram { bytes, segment_bytes, ..datagram }
}
