//! The state of a host's controller, for Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use sparelane_net::node::Node;
use sparelane_net::quic::Quic;

/// Adds the accuracy of gaps, remarks on the controller on this path, and the line rate to a dictionary.
pub fn add_state(out: &Bound<'_, PyDict>, node: &Node<Quic>) -> PyResult<()> {
    let gaps = match node.gap_accuracy() {
        None => None,
        Some(accuracy) => {
            let gaps = PyDict::new(out.py());
            gaps.set_item("count", accuracy.gaps)?;
            gaps.set_item("median_gap_s", accuracy.median_gap.as_secs_f64())?;
            gaps.set_item("median_error_s", accuracy.median_error.as_secs_f64())?;
            gaps.set_item("p99_error_s", accuracy.p99_error.as_secs_f64())?;
            Some(gaps)
        }
    };
    out.set_item("gaps", gaps)?;
    out.set_item("remarks", node.warnings())?;
    out.set_item("line_rate_bps", node.config().line_rate.as_bps())?;
    out.set_item("line_rate_source", node.config().line_source.to_string())
}
