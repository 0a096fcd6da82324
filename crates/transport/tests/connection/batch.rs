//! Segmentation offload: new data in chunks.

use crate::wire::*;
use sparelane_cc::Blueprint;
use sparelane_cc::{CongestionControl, Value, Values, build};
use sparelane_core::Dur;
use sparelane_transport::TransportConfig;

fn in_chunks_of(send_batch: u32) -> TransportConfig {
    TransportConfig { send_batch, ..with_sack() }
}

/// Returns RC3 around NewReno, whose tail waits for an idle interface.
fn pulling(initial_window: u64) -> Box<dyn CongestionControl> {
    let mut inner = Values::default();
    inner.set("initial_window", Value::Whole(initial_window));
    build("rc3", &Values::default(), &Blueprint::of_any(MSS, &inner)).expect("a controller")
}

#[test]
fn new_data_is_sent_in_full_chunks_and_the_last_has_the_rest() {
    let mut wire = Wire::new(in_chunks_of(4), newreno(12), lose(&[]));
    wire.write(62);
    let mut counts = vec![0];
    while !wire.sender.is_done() {
        assert!(wire.step(at_ms(10_000)));
        counts.push(wire.data().len());
    }
    assert_eq!(wire.sent_at(100).len(), 12);
    assert!(!wire.sender.is_inside_chunk(), "no chunk from the tail is in progress");
    assert!(counts.windows(2).all(|pair| matches!(pair[1] - pair[0], 0 | 4 | 8 | 12) || pair[1] == 62), "{counts:?}");
    assert_eq!((wire.data().len(), wire.resent()), (62, vec![]));
}

/// A third of a window of 10: chunks of 3, for which there is room three times.
#[test]
fn a_chunk_has_no_more_than_a_third_of_the_window() {
    let mut wire = Wire::new(in_chunks_of(44), newreno(10), lose(&[]));
    wire.write(100);
    wire.run_until(at_ms(150));
    assert_eq!(wire.sent_at(100), (0..9).collect::<Vec<_>>());
}

#[test]
fn a_partial_chunk_is_sent_if_nothing_is_in_flight() {
    let config = TransportConfig { receive_window_bytes: Some(2 * MSS), ..in_chunks_of(4) };
    let wire = Wire::transfer(config, constant(12), 6, lose(&[]));
    assert_eq!(wire.rounds(), [2, 2, 2]);
}

#[test]
fn a_later_write_starts_a_new_chunk() {
    let mut wire = Wire::new(in_chunks_of(4), constant(14), lose(&[]));
    wire.write(6);
    wire.write(5);
    wire.write(5);
    wire.run_until(at_ms(150));
    // Chunks of 4 and 2, then 4 and 1. The window leaves room for 3 segments of the third write, less than its chunk of
    // 4.
    assert_eq!(wire.sent_at(100).len(), 11);
    wire.run();
}

#[test]
fn retransmissions_are_single_segments() {
    let wire = Wire::transfer(in_chunks_of(4), newreno(12), 60, lose(&[2, 9]));
    assert_eq!(wire.resent().iter().map(|&(_, seq)| seq).collect::<Vec<_>>(), [2, 9]);
    assert_eq!(wire.sender.counts().timeouts, 0);
}

/// NSDI 2014 section 4.2.3 and Fig. 6: the chunks start at the tail, their segments are in order, and each chunk has
/// the lowest class among its segments.
#[test]
fn a_chunk_from_the_tail_is_sent_in_order_and_in_one_class() {
    let wire = Wire::transfer(in_chunks_of(9), controller("rc3", &[("initial_window", 4)]), 66, lose(&[]));
    let chunk = |first: u64, end: u64, class: u8| (first..end).map(move |seq| (seq, class));
    // The last segment of the fifth chunk is the 45th from the tail, which is beyond the 40 segments of class 1.
    let expected: Vec<_> = [(57, 66, 1), (48, 57, 1), (39, 48, 1), (30, 39, 1), (21, 30, 2), (12, 21, 2), (4, 12, 2)]
        .into_iter()
        .flat_map(|(first, end, class)| chunk(first, end, class))
        .collect();
    assert_eq!(wire.low(), expected);
}

#[test]
fn a_chunk_from_the_tail_stays_together_if_it_waits_for_the_interface() {
    let mut wire = Wire::new(in_chunks_of(9), pulling(4), lose(&[]));
    wire.busy = Dur::from_us(10);
    wire.write(66);
    wire.run();
    let low = wire.low();
    assert!(low.chunks(9).take(5).all(|chunk| chunk.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1)), "{low:?}");
}
