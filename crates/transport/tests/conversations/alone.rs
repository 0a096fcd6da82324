//! A sender without a wire: the test plays the receiver, acknowledgment by acknowledgment.

use crate::wire::{MSS, at_ms};
use sparelane_cc::CongestionControl;
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_transport::{
    AckError, AckSegment, Acknowledgment, SackBlock, Segment, Sender, Transmit, TransportConfig,
};

pub struct Alone {
    pub sender: Sender,
    pub now: Time,
}

impl Alone {
    /// An open connection with so many segments to send, at 100 ms.
    pub fn new(config: TransportConfig, cc: Box<dyn CongestionControl>, segments: u64) -> Alone {
        let mut sender = Sender::new(config, cc, Stream::new(1, Domain::Controller, 0));
        sender.write(segments * MSS);
        assert_eq!(sender.poll_transmit(Time::ZERO, true), Some(Transmit::Syn));
        sender.handle_syn_ack(at_ms(100), None);
        Alone { sender, now: at_ms(100) }
    }

    /// What the sender sends now.
    pub fn sends_segments(&mut self) -> Vec<Segment> {
        let next = || match self.sender.poll_transmit(self.now, true) {
            Some(Transmit::Data(segment)) => Some(segment),
            _ => None,
        };
        std::iter::from_fn(next).collect()
    }

    /// The numbers of what the sender sends now.
    pub fn sends(&mut self) -> Vec<u64> {
        self.sends_segments().iter().map(|segment| segment.seq).collect()
    }

    /// A class-0 acknowledgment of all below `cumulative`, caused by `trigger`, with these SACK blocks, and what
    /// the sender sends for it.
    pub fn hears(&mut self, cumulative: u64, trigger: u64, blocks: &[(u64, u64)]) -> Vec<u64> {
        self.hears_in_class(0, cumulative, trigger, blocks)
    }

    pub fn hears_in_class(&mut self, class: u8, cumulative: u64, trigger: u64, blocks: &[(u64, u64)]) -> Vec<u64> {
        let heard = self.is_told(class, cumulative, trigger, blocks);
        assert_eq!(heard, Ok(()), "an acknowledgment of all below {cumulative}");
        self.sends()
    }

    /// The sender is told this, true or not.
    pub fn is_told(&mut self, class: u8, cumulative: u64, trigger: u64, blocks: &[(u64, u64)]) -> Result<(), AckError> {
        let blocks: Vec<_> = blocks.iter().map(|&(start, end)| SackBlock { start, end }).collect();
        let ack = AckSegment { cumulative, trigger, trigger_retransmitted: false, class, ecn_echo: false };
        self.sender.handle_ack(self.now, &Acknowledgment::of(ack, &blocks))
    }

    pub fn wait(&mut self, ms: u64) {
        self.now += Dur::from_ms(ms);
    }
}
