//! The Python module `sparelane._native`: bindings of the other crates, without logic of its own.
//!
//! `python/sparelane/_native.pyi` declares the same names with their types. Doc comments of exported items become
//! Python docstrings.

mod catalogue;
#[cfg(target_os = "linux")]
mod emulate;
mod errors;
mod json;
mod learn;
#[cfg(target_os = "linux")]
mod linux;
mod plugin;
mod rapid;
mod results;
mod run;
mod text;
mod traces;
mod walk;
mod wire;
mod wire_controller;
mod wire_path;
mod wire_settings;

/// The allocator. The wire allocates one buffer per packet, which takes a tenth of the time of glibc's allocator.
/// Transfers need a fifth less processor time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The module `sparelane._native`.
#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::catalogue::{aliases, catalogue, json_schema, name_advice, normalized};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::emulate::PyEmulation;
    #[pymodule_export]
    use crate::errors::{Cancelled, EmulationError, LinuxError, PhysicsError, ScenarioError, WireError};
    #[pymodule_export]
    use crate::learn::{AgentView, Stepper};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::linux::{
        PyLoadedController, PyWatch, linux_constants, linux_examine, linux_loaded, linux_programs, linux_unload,
    };
    #[pymodule_export]
    use crate::plugin::{
        ControllerBase, ControllerKind, PyAck, PyCatalogue, PyCongestion, Run, SizesKind, WorkloadKind,
    };
    #[pymodule_export]
    use crate::rapid::{bass, rapid_estimates, rapid_gaps};
    #[pymodule_export]
    use crate::results::Results;
    #[pymodule_export]
    use crate::run::{Prepared, prepare, size};
    #[pymodule_export]
    use crate::text::{capture_hosts, decoded, identified, key_path, quantity, recognized, tables};
    #[pymodule_export]
    use crate::walk::walk;
    #[pymodule_export]
    use crate::wire::{
        PyReceiver, PySender, PyTunnel, check_wire, clean_partial, list_partial, list_sources, new_key, read_config,
        show_keys, trust, untrust,
    };
    #[pymodule_export]
    use crate::wire_path::measure_path;
    #[pymodule_export]
    use crate::wire_settings::wire_settings;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
