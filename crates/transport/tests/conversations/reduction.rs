//! Proportional rate reduction (RFC 9937), and what a reduction of the window starts from.

use crate::wire::*;
use sparelane_cc::Congestion;
use sparelane_core::Dur;
use sparelane_transport::{FlightSize, TransportConfig};

fn proportional() -> TransportConfig {
    TransportConfig { prr: true, ..with_sack() }
}

/// A window of 40 arrives one segment a millisecond, and loses its first: how many class-0 segments leave in each ten milliseconds
/// from the third report on.
fn sends_after_a_loss(config: TransportConfig) -> Vec<usize> {
    let script: Script = Box::new(|sent| match sent.item {
        Item::Data(segment) if segment.seq == 0 && sent.earlier == 0 => Fate::Lost,
        Item::Data(segment) if segment.seq < 40 => Fate::Late(Dur::from_ms(segment.seq)),
        _ => Fate::Arrive,
    });
    let wire = Wire::transfer(config, newreno(40), 200, script);
    assert_eq!(wire.resent(), [(203, 0)]);
    (0..4)
        .map(|step| wire.data().iter().filter(|(ms, _)| (203 + 9 * step..212 + 9 * step).contains(ms)).count())
        .collect()
}

#[test]
fn what_goes_out_is_in_proportion_to_what_arrives_and_not_silence_and_then_a_burst() {
    // 37 arrivals are left of the 39 that were in flight; limited transmit sent two of them. RFC 6675 waits for half of them.
    assert_eq!(sends_after_a_loss(with_sack())[..2], [1, 0]);
    let proportional = sends_after_a_loss(proportional());
    assert!(proportional.iter().all(|sent| (4..=6).contains(sent)), "{proportional:?}");
}

/// Of a window of 40 thirty are lost: what is left lies below the new window, and grows by one for each safe arrival.
#[test]
fn a_flight_that_losses_took_below_the_window_grows_as_in_slow_start() {
    let lost: Vec<u64> = (0..30).collect();
    let (cc, log, _) = Noting::around(newreno(40));
    let wire = Wire::transfer(proportional(), cc, 200, lose(&lost));
    let resent: Vec<_> = wire.resent().into_iter().map(|(ms, _)| ms).collect();
    assert_eq!(resent.len(), 30);
    // Eight arrivals from the third on send eight. Then each of them sends itself and one more, and each of the two segments of
    // limited transmit one.
    let in_round = |round: u64| resent.iter().filter(|&&ms| ms / 100 == round).count();
    assert_eq!((in_round(2), in_round(3), in_round(4)), (8, 18, 4));
    assert_eq!(log.lock().expect("one thread").len(), 1);
    assert_eq!(wire.sender.counts().timeouts, 0);
}

#[test]
fn when_the_repair_is_over_the_window_is_the_controllers() {
    let wire = Wire::transfer(proportional(), newreno(20), 200, lose(&[5]));
    let after = wire.rounds();
    // A window of 25 when the loss is found.
    assert_eq!(wire.window_at(250), 12_500);
    assert!(after[3..6].iter().all(|&sent| (12..=15).contains(&sent)), "{after:?}");
}

/// The first segment and all its repairs are lost while the others arrive and more are sent: a timeout finds far more
/// outstanding than the window ever was.
#[test]
fn half_of_what_is_outstanding_is_no_reduction_where_the_first_hole_is_stuck() {
    let told = |flight_size| {
        let (cc, log, _) = Noting::around(newreno(10));
        let config = TransportConfig { flight_size, ..with_sack() };
        Wire::transfer(config, cc, 300, lose(&[3, 3]));
        let log = log.lock().expect("one thread");
        log.iter()
            .filter_map(|(_, event)| match event {
                Congestion::Loss { flight_bytes } | Congestion::Timeout { flight_bytes, .. } => {
                    Some(flight_bytes / MSS)
                }
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    // A window of 13 when the loss is found, and of 6 afterwards; two full windows are sent beyond the hole until the timeout.
    assert_eq!(told(FlightSize::Clipped), [13, 6]);
    assert_eq!(told(FlightSize::Window), [13, 6]);
    let outstanding = told(FlightSize::Outstanding);
    assert!(outstanding[0] == 13 && outstanding[1] > 20, "{outstanding:?}");
    let pipe = told(FlightSize::Pipe);
    assert!(pipe[0] == 11 && pipe[1] <= 7, "{pipe:?}");
}
