//! `preset` of `[transport]`: the behaviour of a known TCP implementation, as one setting.
//!
//! A preset is a starting point. Each key that the table also gives takes precedence.

use sparelane_cc::{Controller, Kind, RestartRule, Value, Values};
use sparelane_core::Dur;
use sparelane_transport::{DelayedAck, FlightSize, RtoConfig, TransportConfig};

/// A known implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Linux 6.12 with its defaults.
    Linux,
    /// The text of the RFCs, including each SHOULD.
    Rfc,
    /// The ns-3.16 of RC3's authors, with their SACK (NSDI 2014 section 5.1).
    Ns3,
}

impl Preset {
    /// The names in scenarios.
    pub const NAMES: [(&'static str, Preset); 3] =
        [("linux", Preset::Linux), ("rfc", Preset::Rfc), ("ns-3", Preset::Ns3)];

    /// The name in scenarios.
    fn name(self) -> &'static str {
        Preset::NAMES.into_iter().find(|(_, preset)| *preset == self).map_or("", |(name, _)| name)
    }

    /// The parameters of `controller` under this preset: those whose defaults differ from the implementation, and its
    /// own variant of the controller, if there is one.
    pub fn parameters(self, controller: &Controller) -> Values {
        let mut values = Values::default();
        for param in controller.params {
            match (param.name, param.kind, self) {
                ("like", Kind::Choice(kinds), _) if kinds.contains(&self.name()) => {
                    values.set(param.name, Value::Word(self.name().to_owned()));
                }
                // tcp_slow_start counts all segments that an acknowledgment covers.
                ("slow_start_limit", _, Preset::Linux) => values.set(param.name, Value::Whole(1_000_000)),
                // RFC 3465 section 2.3, which RFC 5681 section 3.1 recommends.
                ("slow_start_limit", _, Preset::Rfc) => values.set(param.name, Value::Whole(2)),
                // The authors' flows start with four segments, and count acknowledgments.
                ("initial_window", _, Preset::Ns3) => values.set(param.name, Value::Whole(4)),
                ("growth_limit", _, Preset::Ns3) => values.set(param.name, Value::Whole(1)),
                _ => {}
            }
        }
        values
    }

    /// The transport settings under this preset.
    pub fn transport(self) -> TransportConfig {
        let plain = TransportConfig::default();
        match self {
            Preset::Linux => TransportConfig {
                // Ethernet's 1500 bytes minus IP, TCP and padded timestamps. The link carries 14 bytes more.
                mss_bytes: 1448,
                header_bytes: 66,
                flight_size: FlightSize::Window,
                prr: true,
                rack_tlp: true,
                // TCP_TIMEOUT_MIN_US.
                rack_timer_delay: Dur::from_ms(2),
                // TCP_TS_HZ: tcp_ack_update_rtt measures retransmissions by timestamps.
                resent_rtt_tick: Some(Dur::from_ms(1)),
                adaptive_reordering: true,
                // The lower bound TCP_DELACK_MIN.
                delayed_ack: Some(DelayedAck { every_segments: 2, timeout: Dur::from_ms(40) }),
                // tcp_rtt_estimator keeps the variance term above TCP_RTO_MIN.
                rto: RtoConfig { variance_min: Dur::from_ms(200), max: Dur::from_secs(120), ..plain.rto },
                undo_spurious: true,
                syn_loss_resets_window: false,
                // tcp_slow_start_after_idle.
                restart_after_idle: Some(RestartRule::Linux),
                ..plain
            },
            Preset::Rfc => TransportConfig {
                prr: true,
                rack_tlp: true,
                adaptive_reordering: true,
                // RFC 5681 section 4.2 and RFC 1122 section 4.2.3.2.
                delayed_ack: Some(DelayedAck { every_segments: 2, timeout: Dur::from_ms(500) }),
                // RFC 6298 rule 2.4.
                rto: RtoConfig { min: Dur::from_secs(1), ..plain.rto },
                restart_after_idle: Some(RestartRule::Rfc5681),
                ..plain
            },
            Preset::Ns3 => TransportConfig {
                flight_size: FlightSize::Pipe,
                limited_transmit: false,
                timestamps: false,
                sack_survives_timeout: false,
                rto: RtoConfig { syn: Dur::from_secs(3), handshake_sample: false, ..plain.rto },
                ..plain
            },
        }
    }
}
