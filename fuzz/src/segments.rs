//! Fuzzes a receiver with arbitrary segments and chunks.

use super::bytes::Bytes;
use sparelane_core::{Dur, Time};
use sparelane_transport::{Chunk, DelayedAck, Ecn, Receiver, Segment, TransportConfig};
use std::collections::BTreeSet;

const MSS: u64 = 1_000;
/// The receive window in segments.
const WINDOW: u64 = 100;

/// Runs one connection.
///
/// # Panics
/// If the receiver panics, acknowledges segments that did not arrive, or exceeds the memory limit.
pub fn check(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let config = TransportConfig {
        mss_bytes: MSS,
        receive_window_bytes: Some(WINDOW * MSS),
        held_ranges: 1 + usize::from(bytes.byte() % 20),
        sack: bytes.byte() % 8 > 0,
        ecn: [Ecn::Off, Ecn::Classic, Ecn::Dctcp][usize::from(bytes.byte() % 3)],
        delayed_ack: bytes
            .coin()
            .then(|| DelayedAck { every_segments: u32::from(bytes.byte() % 8).max(1), timeout: Dur::from_ms(40) }),
        ..TransportConfig::default()
    };
    let mut receiver = Receiver::new(&config);
    let mut arrived = BTreeSet::new();
    let mut now = Time::ZERO;
    while !bytes.is_over() {
        now += Dur::from_us(bytes.scaled() >> 44);
        let seq = bytes.around(receiver.next_expected() + 90);
        let before = receiver.next_expected();
        let bits = bytes.byte();
        let bit = |number: u8| bits >> number & 1 == 1;
        let class = if bit(0) { 0 } else { bytes.byte() % 8 };
        let acknowledgment = if bit(1) {
            let segments = if bits == 255 { u32::MAX } else { 1 + u32::from(bytes.byte() % 8) };
            arrived.extend((0..u64::from(segments.min(1_000))).filter_map(|more| seq.checked_add(more)));
            let chunk = Chunk {
                first: seq,
                segments,
                payload_bytes: MSS as u32,
                last_payload_bytes: MSS as u32,
                class,
                retransmission: bit(2),
                window_reduced: bit(3),
                marked: bit(4),
            };
            receiver.handle_chunk(now, chunk)
        } else {
            arrived.insert(seq);
            let payload_bytes = if bit(5) { u32::from(bytes.byte()) } else { MSS as u32 };
            let segment = Segment { seq, payload_bytes, class, retransmission: bit(2), window_reduced: bit(3) };
            receiver.handle_data(now, segment, bit(4))
        };
        let expected = receiver.next_expected();
        // At a change of DCTCP's CE state, the delayed acknowledgment excludes the new segment.
        let is_between = |seq: u64| before <= seq && seq <= expected;
        assert!(acknowledgment.is_none_or(|ack| is_between(ack.cumulative)), "{acknowledgment:?} of {expected}");
        assert!(
            (expected.saturating_sub(50)..expected).all(|seq| arrived.contains(&seq)),
            "not all below {expected} arrived"
        );
        for block in receiver.sack_blocks() {
            assert!(block.start < block.end && block.end - block.start <= WINDOW, "{block:?}");
            assert!((block.start..block.end).all(|seq| arrived.contains(&seq)), "{block:?} did not arrive");
        }
        assert!(receiver.memory_bytes() < 5_000, "{} bytes", receiver.memory_bytes());
        if bit(6) {
            receiver.handle_timer(now);
        }
    }
}
