//! The controllers of this crate. This list alone depends on the files in [`algos`](crate::algos).

use crate::algos::{
    bbr, bbr3, bic, cdg, compound, constant, cubic, dctcp, fast, highspeed, htcp, hybla, illinois, ledbat,
    ledbat_plus_plus, lp, newreno, nv, pcc_allegro, pcc_vivace, rapid, rc3, rcp, rtcp, scalable, timely, vegas, veno,
    westwood, yeah,
};
use crate::pace::HEADER_BYTES;
use crate::param::Values;
use crate::registry::{Blueprint, Controller, Registry};
use sparelane_core::Rate;
use std::sync::{Arc, LazyLock};

/// The controllers of this crate, in the order in which people meet them.
const BUILT_IN: [Controller; 30] = [
    newreno::CONTROLLER,
    cubic::CONTROLLER,
    bic::CONTROLLER,
    highspeed::CONTROLLER,
    scalable::CONTROLLER,
    htcp::CONTROLLER,
    hybla::CONTROLLER,
    dctcp::CONTROLLER,
    bbr::CONTROLLER,
    bbr3::CONTROLLER,
    timely::CONTROLLER,
    vegas::CONTROLLER,
    nv::CONTROLLER,
    fast::CONTROLLER,
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
    /// The controllers of this crate.
    pub fn built_in() -> Arc<Registry> {
        Arc::clone(&BUILT_IN_REGISTRY)
    }
}

impl<'a> Blueprint<'a> {
    /// A connection without end, of no class, with headers of 40 bytes, on an interface of 10 Gb/s, with the built-in controllers:
    /// enough to learn about one.
    pub fn of_any(mss_bytes: u64, inner: &'a Values) -> Blueprint<'a> {
        let registry = &**BUILT_IN_REGISTRY;
        let line_rate = Rate::from_gbps(10);
        Blueprint {
            mss_bytes,
            header_bytes: HEADER_BYTES,
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

    fn refusal(change: impl FnOnce(&mut Controller)) -> String {
        let mut own = Controller { name: "own", ..newreno::CONTROLLER };
        change(&mut own);
        Registry::clone(&Registry::built_in()).with(own).expect_err("a contradiction").to_string()
    }

    #[test]
    fn the_built_in_controllers_would_be_taken_by_an_empty_registry() {
        let mut registry = Registry::of(Vec::new());
        for &controller in Registry::built_in().all() {
            registry = registry.with(controller).unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(registry, *Registry::built_in());
    }

    #[test]
    fn what_contradicts_itself_or_another_is_refused() {
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
        assert!(refusal(|own| own.params = TWICE).contains("\"initial_window\": it has one already"));
        assert!(refusal(|own| own.params = KEY).contains("parameter \"class\""));
        assert!(refusal(|own| own.params = BEYOND).starts_with("controller \"own\": `initial_window` is 10; allowed:"));
    }
}
