//! Plugins: controllers, workloads and distributions of flow sizes that are written in Python.

mod base;
mod controller;
mod events;
pub mod fault;
mod flows;
mod params;
mod sizes;

pub use base::ControllerBase;
pub use controller::ControllerKind;
pub use events::{PyAck, PyCongestion};
pub use flows::{Run, WorkloadKind};
pub use sizes::SizesKind;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sparelane_cc::Registry;
use sparelane_scenario::Catalogue;
use std::fmt::Display;

/// The names that a scenario can use: the built-in ones and those of plugins.
#[pyclass(frozen, name = "Catalogue", module = "sparelane._native")]
#[derive(Clone)]
pub struct PyCatalogue(pub Catalogue);

fn refused(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl PyCatalogue {
    /// Adds plugins to the built-in catalogue. Raises `ValueError` if a name is already taken.
    #[new]
    fn new(
        controllers: Vec<Py<ControllerKind>>,
        workloads: Vec<Py<WorkloadKind>>,
        sizes: Vec<Py<SizesKind>>,
    ) -> PyResult<PyCatalogue> {
        let mut catalogue = Catalogue::built_in();
        if !controllers.is_empty() {
            let mut registry = Registry::clone(&Registry::built_in());
            for kind in controllers {
                registry = registry.with(kind.get().0).map_err(refused)?;
            }
            catalogue = catalogue.with_controllers(registry);
        }
        for kind in workloads {
            catalogue = catalogue.with_workload(kind.get().0).map_err(refused)?;
        }
        for kind in sizes {
            catalogue = catalogue.with_sizes(kind.get().0).map_err(refused)?;
        }
        Ok(PyCatalogue(catalogue))
    }
}
