//! A sender without a path: the test passes in each acknowledgment itself.

use crate::wire::{MSS, at_ms};
use sparelane_cc::CongestionControl;
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_transport::{
    AckError, AckSegment, Acknowledgment, SackBlock, Segment, Sender, Transmit, TransportConfig,
};

pub struct SoloSender {
    pub sender: Sender,
    pub now: Time,
}

impl SoloSender {
    /// Creates a sender on a connection that opens at 100 ms, with `segments` full segments to send.
    pub fn new(config: TransportConfig, cc: Box<dyn CongestionControl>, segments: u64) -> SoloSender {
        SoloSender::open(config, cc, |sender| sender.write(segments * MSS))
    }

    /// Creates a sender as [`new`](Self::new) does, with an endless stream to send.
    pub fn endless(config: TransportConfig, cc: Box<dyn CongestionControl>) -> SoloSender {
        SoloSender::open(config, cc, Sender::write_without_end)
    }

    fn open(config: TransportConfig, cc: Box<dyn CongestionControl>, write: impl FnOnce(&mut Sender)) -> SoloSender {
        let mut sender = Sender::new(config, cc, Stream::new(1, Domain::Controller, 0));
        write(&mut sender);
        assert_eq!(sender.poll_transmit(Time::ZERO, true), Some(Transmit::Syn));
        sender.handle_syn_ack(at_ms(100), None);
        SoloSender { sender, now: at_ms(100) }
    }

    /// Returns the segments that the sender sends now.
    pub fn send_segments(&mut self) -> Vec<Segment> {
        let next = || match self.sender.poll_transmit(self.now, true) {
            Some(Transmit::Data(segment)) => Some(segment),
            _ => None,
        };
        std::iter::from_fn(next).collect()
    }

    /// Returns the sequence numbers of the segments that the sender sends now.
    pub fn send(&mut self) -> Vec<u64> {
        self.send_segments().iter().map(|segment| segment.seq).collect()
    }

    /// Passes in a class-0 acknowledgment, triggered by `trigger`, and returns the segments that the sender sends in
    /// response.
    pub fn acknowledge(&mut self, cumulative: u64, trigger: u64, blocks: &[(u64, u64)]) -> Vec<u64> {
        self.acknowledge_in_class(0, cumulative, trigger, blocks)
    }

    pub fn acknowledge_in_class(
        &mut self,
        class: u8,
        cumulative: u64,
        trigger: u64,
        blocks: &[(u64, u64)],
    ) -> Vec<u64> {
        let result = self.try_acknowledge(class, cumulative, trigger, blocks);
        assert_eq!(result, Ok(()), "an acknowledgment of all below {cumulative}");
        self.send()
    }

    /// Passes in an acknowledgment that may be invalid.
    pub fn try_acknowledge(
        &mut self,
        class: u8,
        cumulative: u64,
        trigger: u64,
        blocks: &[(u64, u64)],
    ) -> Result<(), AckError> {
        let blocks: Vec<_> = blocks.iter().map(|&(start, end)| SackBlock { start, end }).collect();
        let ack = AckSegment { cumulative, trigger, trigger_retransmitted: false, class, ecn_echo: false };
        self.sender.handle_ack(self.now, &Acknowledgment::of(ack, &blocks))
    }

    pub fn wait(&mut self, ms: u64) {
        self.now += Dur::from_ms(ms);
    }
}
