//! Opening a connection.

use crate::wire::*;
use sparelane_core::Dur;
use sparelane_transport::{RtoConfig, TransportConfig};

fn is_syn(item: &Item) -> bool {
    *item == Item::Syn
}

#[test]
fn data_follows_the_answer_to_the_syn_by_no_time() {
    let wire = Wire::transfer(with_sack(), newreno(4), 4, lose(&[]));
    assert_eq!(wire.times_ms(is_syn), [0]);
    assert_eq!(wire.sent_at(100), [0, 1, 2, 3]);
    assert_eq!(wire.sender.srtt(), Some(Dur::from_ms(100)));
}

#[test]
fn the_handshake_gives_the_first_round_trip_time_unless_told_otherwise() {
    let srtt = |handshake_sample| {
        let rto = RtoConfig { handshake_sample, ..RtoConfig::default() };
        let mut wire = Wire::new(TransportConfig { rto, ..with_sack() }, newreno(4), lose(&[]));
        wire.write(4);
        wire.run_until(at_ms(150));
        wire.sender.srtt()
    };
    assert_eq!((srtt(true), srtt(false)), (Some(Dur::from_ms(100)), None));
}

#[test]
fn a_lost_syn_is_sent_again_after_one_second_and_then_two_and_four() {
    let script: Script = Box::new(|sent| match sent.item {
        Item::Syn if sent.earlier < 2 => Fate::Lost,
        Item::SynAck if sent.earlier < 1 => Fate::Lost,
        _ => Fate::Arrive,
    });
    let mut wire = Wire::new(with_sack(), newreno(4), script);
    wire.write(4);
    wire.run_until(at_ms(7101));
    assert_eq!(wire.times_ms(is_syn), [0, 1000, 3000, 7000]);
    // RFC 5681 section 3.1: the window starts at one segment, whatever it would have been.
    assert_eq!((wire.sent_at(7100), wire.window_at(7100)), (vec![0], MSS));
    // Which SYN was answered is not known (Karn).
    assert_eq!(wire.sender.srtt(), None);
    wire.run();
    assert_eq!((wire.sender.counts().timeouts, wire.sender.counts().retransmissions), (3, 0));
}

#[test]
fn a_lost_syn_costs_no_window_where_that_is_set() {
    let script: Script =
        Box::new(|sent| if sent.item == Item::Syn && sent.earlier == 0 { Fate::Lost } else { Fate::Arrive });
    let config = TransportConfig { syn_loss_resets_window: false, ..with_sack() };
    let wire = Wire::transfer(config, newreno(4), 4, script);
    assert_eq!(wire.sent_at(1100), [0, 1, 2, 3]);
}

/// RFC 6298 rule 5.7.
#[test]
fn after_a_lost_syn_the_first_data_has_three_seconds() {
    let script: Script = Box::new(|sent| match sent.item {
        Item::Syn | Item::Data(_) if sent.earlier == 0 => Fate::Lost,
        _ => Fate::Arrive,
    });
    let wire = Wire::transfer(with_sack(), newreno(4), 1, script);
    assert_eq!(wire.times_ms(|item| matches!(item, Item::Data(_))), [1100, 4100]);
}
