//! The list of built-in controllers. No other module depends on the files in [`algos`](crate::algos).

use crate::algos::{
    bbr, bbr3, bic, cdg, compound, constant, copa, cubic, dcqcn, dctcp, fast, highspeed, hpcc, htcp, hybla, illinois,
    ledbat, ledbat_plus_plus, lp, newreno, nv, pcc_allegro, pcc_vivace, prague, rapid, rc3, rcp, rtcp, scalable, swift,
    timely, vegas, veno, westwood, yeah,
};
use crate::pace::HEADER_BYTES;
use crate::param::Values;
use crate::registry::{Blueprint, Controller, Registry};
use sparelane_core::Rate;
use std::sync::{Arc, LazyLock};

/// The built-in controllers, in the order of listings: window laws first, then rate-based and two-level controllers.
const BUILT_IN: [Controller; 35] = [
    newreno::CONTROLLER,
    cubic::CONTROLLER,
    bic::CONTROLLER,
    highspeed::CONTROLLER,
    scalable::CONTROLLER,
    htcp::CONTROLLER,
    hybla::CONTROLLER,
    dctcp::CONTROLLER,
    prague::CONTROLLER,
    bbr::CONTROLLER,
    bbr3::CONTROLLER,
    timely::CONTROLLER,
    swift::CONTROLLER,
    dcqcn::CONTROLLER,
    hpcc::CONTROLLER,
    vegas::CONTROLLER,
    nv::CONTROLLER,
    fast::CONTROLLER,
    copa::CONTROLLER,
    illinois::CONTROLLER,
    westwood::CONTROLLER,
    veno::CONTROLLER,
    yeah::CONTROLLER,
    ledbat::CONTROLLER,
    ledbat_plus_plus::CONTROLLER,
    lp::CONTROLLER,
    compound::CONTROLLER,
    cdg::CONTROLLER,
    pcc_allegro::CONTROLLER,
    pcc_vivace::CONTROLLER,
    constant::CONTROLLER,
    rcp::CONTROLLER,
    rapid::CONTROLLER,
    rtcp::CONTROLLER,
    rc3::CONTROLLER,
];

static BUILT_IN_REGISTRY: LazyLock<Arc<Registry>> = LazyLock::new(|| Arc::new(Registry::of(BUILT_IN.to_vec())));

impl Registry {
    /// Returns the built-in controllers.
    pub fn built_in() -> Arc<Registry> {
        Arc::clone(&BUILT_IN_REGISTRY)
    }
}

impl<'a> Blueprint<'a> {
    /// A connection for inspecting a controller outside a simulation: no fixed size, no traffic class, 40-byte headers,
    /// a 10 Gb/s interface and the built-in controllers.
    pub fn of_any(mss_bytes: u64, inner: &'a Values) -> Blueprint<'a> {
        let registry = &**BUILT_IN_REGISTRY;
        let line_rate = Rate::from_gbps(10);
        Blueprint {
            mss_bytes,
            header_bytes: HEADER_BYTES,
            sack: true,
            flow_bytes: None,
            traffic_class: None,
            line_rate,
            inner,
            registry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::{DefaultValue, Kind, Param, Unit};
    use crate::window::INITIAL_WINDOW;
    use crate::wire::{WireDefaults, WireValue};

    fn refusal(change: impl FnOnce(&mut Controller)) -> String {
        let mut own = Controller { name: "own", ..newreno::CONTROLLER };
        change(&mut own);
        Registry::clone(&Registry::built_in()).with(own).expect_err("a contradiction").to_string()
    }

    #[test]
    fn an_empty_registry_accepts_every_built_in_controller() {
        let mut registry = Registry::of(Vec::new());
        for &controller in Registry::built_in().all() {
            registry = registry.with(controller).unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(registry, *Registry::built_in());
    }

    #[test]
    fn a_contradictory_controller_is_refused() {
        const TWICE: &[Param] = &[INITIAL_WINDOW, INITIAL_WINDOW];
        const KEY: &[Param] = &[Param { name: "class", ..INITIAL_WINDOW }];
        const BEYOND: &[Param] = &[Param {
            kind: Kind::Whole { min: 1, max: 5, unit: Unit::Segments },
            default: DefaultValue::Whole(10),
            ..INITIAL_WINDOW
        }];
        assert_eq!(refusal(|own| own.name = "cubic"), "there is a controller \"cubic\" already");
        for name in ["", "My-law", "3rd", "a b", "\u{e9}tude"] {
            assert!(refusal(|own| own.name = name).contains("allowed: lower-case letters"), "{name}");
        }
        assert!(
            refusal(|own| own.params = TWICE)
                .contains("cannot declare \"initial_window\": the name is already declared")
        );
        assert!(refusal(|own| own.params = KEY).contains("cannot declare \"class\""));
        let wire = |values| Some(WireDefaults { values, ..WireDefaults::NONE });
        const UNKNOWN: &[WireValue] = &[WireValue::new("hops", DefaultValue::Whole(1))];
        const TOO_SMALL: &[WireValue] = &[WireValue::new("initial_window", DefaultValue::Whole(0))];
        assert!(refusal(|own| own.wire = wire(UNKNOWN)).contains("on the wire for \"hops\""));
        assert!(refusal(|own| own.wire = wire(TOO_SMALL)).starts_with("controller \"own\": `initial_window` is 0;"));
        assert!(refusal(|own| own.params = BEYOND).starts_with("controller \"own\": `initial_window` is 10; allowed:"));
    }
}
