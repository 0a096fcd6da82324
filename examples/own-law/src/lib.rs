//! A custom controller in a crate outside of sparelane: AIMD with configurable increase and decrease.
//!
//! [`catalogue`] returns the built-in catalogue with this controller added. Scenarios parsed with it can use
//! `controller = "aimd"`, alone or inside `rc3`. For a controller that is not window-based, implement
//! [`sparelane_cc::CongestionControl`] directly.

use sparelane_cc::param::{DefaultValue, Kind, Unit};
use sparelane_cc::registry::RegistryError;
use sparelane_cc::window::{GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START, SLOW_START_LIMIT};
use sparelane_cc::window::{Window, WindowConfig, WindowLaw, Windowed};
use sparelane_cc::{Ack, Congestion, Controller, Cx, Param, Registry};
use sparelane_scenario::Catalogue;

/// The key `increase` in a scheme.
const INCREASE: Param = Param {
    name: "increase",
    kind: Kind::Number { min: 0.001, max: 1000.0, unit: Unit::Segments },
    default: DefaultValue::Number(1.0),
    meaning: "additive increase per window of acknowledgments",
    source: "Chiu and Jain 1989; 1 is RFC 5681",
};

/// The key `keep` in a scheme.
const KEEP: Param = Param {
    name: "keep",
    kind: Kind::Number { min: 0.01, max: 0.99, unit: Unit::One },
    default: DefaultValue::Number(0.5),
    meaning: "fraction of the data in flight that the window keeps at a loss",
    source: "Chiu and Jain 1989; 0.5 is RFC 5681",
};

/// The controller's entry in the registry.
pub const AIMD: Controller = Controller {
    name: "aimd",
    summary: "additive increase, multiplicative decrease",
    source: "Chiu and Jain, Computer Networks and ISDN Systems 17(1), 1989",
    params: &[INCREASE, KEEP, INITIAL_WINDOW, INITIAL_SSTHRESH, SLOW_START_LIMIT, GROWTH_LIMIT, SLOW_START],
    wire: None,
    make: &|values, plan| {
        let law = Aimd { increase: values.number(&INCREASE), keep: values.number(&KEEP), credit_bytes: 0.0 };
        Ok(Box::new(Windowed::new(law, WindowConfig::of(values), plan.mss_bytes)))
    },
};

/// The increase and the decrease of AIMD. [`Windowed`] adds slow start, at most one reduction per round trip, and undo.
#[derive(Debug)]
struct Aimd {
    increase: f64,
    keep: f64,
    /// The fraction of a byte carried over to the next increase.
    credit_bytes: f64,
}

impl WindowLaw for Aimd {
    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        let share = ack.acked_bytes as f64 / window.cwnd as f64;
        self.credit_bytes += self.increase * cx.mss_bytes as f64 * share;
        window.cwnd += self.credit_bytes as u64;
        self.credit_bytes -= self.credit_bytes.floor();
    }

    fn cut(&mut self, _window: &Window, flight_bytes: u64, _event: Congestion, _cx: &mut Cx<'_>) -> u64 {
        (self.keep * flight_bytes as f64) as u64
    }
}

/// The duration of the scenario `shares.toml` in seconds.
pub const SECONDS: f64 = 60.0;

/// Returns the built-in catalogue with AIMD added.
///
/// # Errors
/// If the registry rejects the controller, for example because its name is taken.
pub fn catalogue() -> Result<Catalogue, RegistryError> {
    Ok(Catalogue::built_in().with_controllers(Registry::clone(&Registry::built_in()).with(AIMD)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_scenario::{Scenario, Source};

    const SCENARIO: &str = include_str!("../shares.toml");

    /// Returns the goodput of both flows in Mb/s with the given overrides.
    fn goodputs(settings: &[&str]) -> [f64; 2] {
        let source = Source { file: "shares.toml".to_owned(), folder: ".".into() };
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let catalogue = catalogue().expect("no contradictions");
        let scenario = Scenario::parse_with(&catalogue, SCENARIO, &source, &settings).expect("a scenario");
        let records = scenario.simulate().expect("a small network").run().expect("the run succeeds");
        [0, 1].map(|flow| records.flows.delivered_bytes[flow] as f64 * 8.0 / SECONDS / 1e6)
    }

    #[test]
    fn with_the_constants_of_reno_it_shares_equally_with_reno() {
        let [own, reno] = goodputs(&[]);
        assert!((own / reno - 1.0).abs() < 0.25 && own + reno > 8.0, "{own} and {reno} Mb/s");
    }

    #[test]
    fn a_larger_increase_takes_a_larger_share() {
        let [own, reno] = goodputs(&["scheme.own.increase=4.0"]);
        assert!(own > 1.5 * reno, "{own} and {reno} Mb/s");
    }

    #[test]
    fn it_works_inside_rc3_and_its_parameters_are_validated() {
        let source = Source { file: "shares.toml".to_owned(), folder: ".".into() };
        let catalogue = catalogue().expect("no contradictions");
        let parse = |setting: &str| Scenario::parse_with(&catalogue, SCENARIO, &source, &[setting.to_owned()]);
        assert!(parse("scheme.own={controller=\"rc3\", inner={controller=\"aimd\", keep=0.7}}").is_ok());
        let error = parse("scheme.own.keep=1.5").expect_err("out of range").to_string();
        assert!(error.contains("keep") && error.contains("allowed: a number from 0.01 to 0.99"), "{error}");
        let unknown = Scenario::parse(SCENARIO, &source, &[]).expect_err("not built in").to_string();
        assert!(unknown.contains("\"aimd\""), "{unknown}");
    }
}
