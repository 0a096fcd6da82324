//! Tests that a request is validated before the build, the privileges and the kernel are checked. The same mistakes are
//! therefore reported with and without libbpf, and with and without privileges.

use sparelane_bpf::error::BpfError;
use sparelane_bpf::load::{Request, load};
use sparelane_bpf::loaded::unload;
use sparelane_bpf::telemetry::Watch;

fn request() -> Request {
    Request {
        program: "rtcp".to_owned(),
        name: "rtcp".to_owned(),
        settings: vec![("line_rate".to_owned(), "1Gbps".to_owned())],
        ..Request::default()
    }
}

fn set(key: &str, text: &str) -> Vec<(String, String)> {
    vec![(key.to_owned(), text.to_owned())]
}

#[test]
fn a_mistake_in_a_request_is_reported_by_every_build() {
    let nonsense = || "nonsense".to_owned();
    let above_initial = [set("line_rate", "1Gbps"), set("min_rate", "1Mbps")].concat();
    let wrong = [
        (Request { program: nonsense(), ..request() }, "there is no program \"nonsense\""),
        (Request { name: "a b".to_owned(), ..request() }, "\"a b\" is not a controller name"),
        (Request { settings: set("nonsense", "3"), ..request() }, "no setting \"nonsense\""),
        // The program has the default rules of the counter and the window only.
        (Request { settings: set("counter", "printed"), ..request() }, "no setting \"counter\""),
        (Request { settings: set("line_rate", "fast"), ..request() }, "line_rate = \"fast\""),
        (
            Request { program: "rapid".to_owned(), settings: above_initial, ..request() },
            "`min_rate` is 1 Mb/s; allowed in the kernel: at most initial_rate, which is 100 kb/s",
        ),
        (Request { interfaces: vec![nonsense()], ..request() }, "no interface \"nonsense\""),
        (Request { cgroups: vec![nonsense()], ..request() }, "no cgroup \"nonsense\""),
        (Request { routes: vec![nonsense()], ..request() }, "no route to nonsense"),
    ];
    for (request, message) in wrong {
        let error = load(&request).expect_err("a mistake").to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_controller_that_is_not_loaded_is_named_by_every_build() {
    for error in [unload("nonsense").expect_err("not loaded"), Watch::start("nonsense").expect_err("not loaded")] {
        assert!(matches!(&error, BpfError::NotLoaded { name, .. } if name == "nonsense"), "{error}");
    }
    assert!(matches!(unload("a b"), Err(BpfError::BadName { .. })));
}

#[cfg(not(feature = "libbpf"))]
#[test]
fn a_build_without_libbpf_refuses_a_valid_request() {
    assert!(matches!(load(&request()), Err(BpfError::NotBuilt)));
}
