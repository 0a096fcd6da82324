//! The pace of a controller, observed on the wire.

use crate::wire::*;
use sparelane_cc::{CongestionControl, Value, Values, build};
use sparelane_core::{Dur, Rate};
use sparelane_transport::HEADER_BYTES;

fn paced(window: u64, rate: Rate) -> Box<dyn CongestionControl> {
    let mut values = Values::default();
    values.set("window", Value::Whole(window));
    values.set("pace", Value::Rate(Some(rate)));
    build("constant", &values, &Values::default(), MSS).expect("a pace")
}

fn gaps(wire: &Wire) -> Vec<Dur> {
    let data: Vec<_> = wire.sent.iter().filter(|sent| matches!(sent.item, Item::Data(_))).collect();
    data.windows(2).map(|pair| pair[1].at - pair[0].at).collect()
}

#[test]
fn segments_leave_at_the_pace_headers_included() {
    let rate = Rate::from_mbps(8);
    let mut wire = Wire::new(with_sack(), paced(10_000, rate), lose(&[]));
    wire.write_bytes(49 * MSS + 500);
    wire.run();
    assert_eq!(gaps(&wire), [rate.time_for(MSS + HEADER_BYTES); 49]);
}

#[test]
fn a_short_segment_makes_a_short_gap() {
    let rate = Rate::from_mbps(8);
    let mut wire = Wire::new(with_sack(), paced(10_000, rate), lose(&[]));
    wire.write_bytes(500);
    wire.write(1);
    wire.run();
    assert_eq!(gaps(&wire), [rate.time_for(500 + HEADER_BYTES)]);
}

#[test]
fn retransmissions_keep_to_the_pace() {
    let rate = Rate::from_mbps(8);
    let wire = Wire::transfer(with_sack(), paced(10_000, rate), 300, lose(&[20, 21, 30]));
    assert_eq!(wire.resent().len(), 3);
    assert!(gaps(&wire).iter().all(|&gap| gap >= rate.time_for(MSS + HEADER_BYTES)), "{:?}", gaps(&wire));
    assert_eq!(wire.sender.counts().timeouts, 0);
}

#[test]
fn a_pause_earns_no_burst() {
    let rate = Rate::from_mbps(8);
    let mut wire = Wire::new(with_sack(), paced(10_000, rate), lose(&[]));
    wire.write(5);
    wire.run();
    wire.run_until(at_ms(5000));
    wire.write(20);
    wire.run();
    assert!(gaps(&wire).iter().all(|&gap| gap >= rate.time_for(MSS + HEADER_BYTES)), "{:?}", gaps(&wire));
}

#[test]
fn the_window_binds_a_paced_sender_too() {
    let wire = Wire::transfer(with_sack(), paced(3, Rate::from_gbps(1)), 30, lose(&[]));
    assert!(wire.rounds().iter().all(|&sent| sent == 3), "{:?}", wire.rounds());
}
