//! The handshake.

use crate::wire::*;
use sparelane_core::Dur;
use sparelane_transport::{RtoConfig, TransportConfig};

fn is_syn(item: &Item) -> bool {
    *item == Item::Syn
}

#[test]
fn data_follows_the_syn_ack_immediately() {
    let wire = Wire::transfer(with_sack(), newreno(4), 4, lose(&[]));
    assert_eq!(wire.times_ms(is_syn), [0]);
    assert_eq!(wire.sent_at(100), [0, 1, 2, 3]);
    assert_eq!(wire.sender.srtt(), Some(Dur::from_ms(100)));
}

#[test]
fn the_handshake_gives_the_first_sample_if_enabled() {
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
fn a_lost_syn_is_retransmitted_after_one_two_and_four_seconds() {
    let script: Script = Box::new(|sent| match sent.item {
        Item::Syn if sent.earlier < 2 => Fate::Lost,
        Item::SynAck if sent.earlier < 1 => Fate::Lost,
        _ => Fate::Arrive,
    });
    let mut wire = Wire::new(with_sack(), newreno(4), script);
    wire.write(4);
    wire.run_until(at_ms(7101));
    assert_eq!(wire.times_ms(is_syn), [0, 1000, 3000, 7000]);
    // RFC 5681 section 3.1: after a lost SYN the initial window is one segment.
    assert_eq!((wire.sent_at(7100), wire.window_at(7100)), (vec![0], MSS));
    // Karn's algorithm: the SYN-ACK may answer either SYN, so there is no sample.
    assert_eq!(wire.sender.srtt(), None);
    wire.run();
    assert_eq!((wire.sender.counts().timeouts, wire.sender.counts().retransmissions), (3, 0));
}

#[test]
fn a_lost_syn_does_not_reduce_the_window_if_disabled() {
    let script: Script =
        Box::new(|sent| if sent.item == Item::Syn && sent.earlier == 0 { Fate::Lost } else { Fate::Arrive });
    let config = TransportConfig { syn_loss_resets_window: false, ..with_sack() };
    let wire = Wire::transfer(config, newreno(4), 4, script);
    assert_eq!(wire.sent_at(1100), [0, 1, 2, 3]);
}

/// RFC 6298 rule 5.7.
#[test]
fn after_a_lost_syn_the_initial_rto_is_three_seconds() {
    let script: Script = Box::new(|sent| match sent.item {
        Item::Syn | Item::Data(_) if sent.earlier == 0 => Fate::Lost,
        _ => Fate::Arrive,
    });
    let wire = Wire::transfer(with_sack(), newreno(4), 1, script);
    assert_eq!(wire.times_ms(|item| matches!(item, Item::Data(_))), [1100, 4100]);
}
