//! What Python adds to the catalogue: controllers, workloads and distributions of flow sizes.

mod base;
mod controller;
pub mod fault;
mod flows;
mod news;
mod params;
mod sizes;

pub use base::Base;
pub use controller::ControllerKind;
pub use flows::{Run, WorkloadKind};
pub use news::{AckNews, CongestionNews};
pub use sizes::SizesKind;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sparelane_cc::Registry;
use sparelane_scenario::Catalogue;
use std::fmt::Display;

/// What a scenario can name: what is built in, and what is registered in Python.
#[pyclass(frozen, name = "Catalogue", module = "sparelane._native")]
#[derive(Clone)]
pub struct PyCatalogue(pub Catalogue);

fn refused(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl PyCatalogue {
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
