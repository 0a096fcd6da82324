//! Proportional rate reduction (RFC 9937), and the FlightSize from which a window is reduced.

use crate::wire::*;
use sparelane_cc::Congestion;
use sparelane_core::Dur;
use sparelane_transport::{FlightSize, TransportConfig};

fn proportional() -> TransportConfig {
    TransportConfig { prr: true, ..with_sack() }
}

/// Returns the number of segments sent in each of four 9 ms intervals, from the third report on. A window of 40
/// segments arrives at one per millisecond, and the first one is lost.
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
fn transmissions_are_proportional_to_arrivals_without_a_pause_and_a_burst() {
    // RFC 6675 pauses until half of the remaining segments have arrived.
    assert_eq!(sends_after_a_loss(with_sack())[..2], [1, 0]);
    let proportional = sends_after_a_loss(proportional());
    assert!(proportional.iter().all(|sent| (4..=6).contains(sent)), "{proportional:?}");
}

/// Thirty segments of a window of 40 are lost. The pipe is then below the new window, and grows by one segment for each
/// safe acknowledgment.
#[test]
fn a_pipe_below_the_window_grows_as_in_slow_start() {
    let lost: Vec<u64> = (0..30).collect();
    let (cc, log, _) = Recorder::around(newreno(40));
    let wire = Wire::transfer(proportional(), cc, 200, lose(&lost));
    let resent: Vec<_> = wire.resent().into_iter().map(|(ms, _)| ms).collect();
    assert_eq!(resent.len(), 30);
    // Eight arrivals release eight segments. In the next round each of these releases two, and the two segments of
    // limited transmit release one each.
    let in_round = |round: u64| resent.iter().filter(|&&ms| ms / 100 == round).count();
    assert_eq!((in_round(2), in_round(3), in_round(4)), (8, 18, 4));
    assert_eq!(log.lock().expect("one thread").len(), 1);
    assert_eq!(wire.sender.counts().timeouts, 0);
}

#[test]
fn after_recovery_the_controllers_window_applies() {
    let wire = Wire::transfer(proportional(), newreno(20), 200, lose(&[5]));
    let after = wire.rounds();
    // The window is 25 when the loss is detected.
    assert_eq!(wire.window_at(250), 12_500);
    assert!(after[3..6].iter().all(|&sent| (12..=15).contains(&sent)), "{after:?}");
}

/// The first hole persists, because its retransmission is lost too, and new data is sent above it. At the timeout much
/// more data is outstanding than fits into the window.
#[test]
fn the_flight_size_depends_on_its_definition_while_the_first_hole_persists() {
    let flight_sizes = |flight_size| {
        let (cc, log, _) = Recorder::around(newreno(10));
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
    // The window is 13 when the loss is detected, and 6 afterwards. Two full windows are sent above the hole before the
    // timeout.
    assert_eq!(flight_sizes(FlightSize::Clipped), [13, 6]);
    assert_eq!(flight_sizes(FlightSize::Window), [13, 6]);
    let outstanding = flight_sizes(FlightSize::Outstanding);
    assert!(outstanding[0] == 13 && outstanding[1] > 20, "{outstanding:?}");
    let pipe = flight_sizes(FlightSize::Pipe);
    assert!(pipe[0] == 11 && pipe[1] <= 7, "{pipe:?}");
}
