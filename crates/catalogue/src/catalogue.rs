//! The catalogue as a value: the built-in kinds, plus those of other crates.

use crate::queue::{QUEUES, QueueForm, Queues};
use crate::topology::{TOPOLOGIES, TopologyForm};
use crate::workload::{SIZE_FORMS, SizeForm, WORKLOADS, WorkloadForm};
use sparelane_cc::Registry;
use std::sync::Arc;
use thiserror::Error;

/// Everything that a scenario can name. Callers pass a catalogue to the parser: the built-in one, or one extended with
/// kinds of another crate.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// Controllers.
    pub controllers: Arc<Registry>,
    /// Kinds of queue.
    pub queues: Queues,
    /// Forms of `[topology]`.
    pub topologies: Vec<&'static TopologyForm>,
    /// Forms of `[[workload]]`.
    pub workloads: Vec<&'static WorkloadForm>,
    /// Forms of `sizes`.
    pub sizes: Vec<&'static SizeForm>,
}

/// The error for a kind whose name is taken.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("there is a {what} called \"{name}\" already; allowed: another name")]
pub struct NameTaken {
    what: &'static str,
    name: &'static str,
}

impl Default for Catalogue {
    fn default() -> Catalogue {
        Catalogue::built_in()
    }
}

impl Catalogue {
    /// Returns the built-in catalogue.
    pub fn built_in() -> Catalogue {
        Catalogue {
            controllers: Registry::built_in(),
            queues: Queues(QUEUES.iter().collect()),
            topologies: TOPOLOGIES.to_vec(),
            workloads: WORKLOADS.to_vec(),
            sizes: SIZE_FORMS.to_vec(),
        }
    }

    /// Replaces the controllers of this catalogue by those of `registry`.
    pub fn with_controllers(self, registry: Registry) -> Catalogue {
        Catalogue { controllers: Arc::new(registry), ..self }
    }

    /// Adds a kind of queue to this catalogue.
    ///
    /// # Errors
    /// Fails if the name is taken.
    pub fn with_queue(mut self, form: &'static QueueForm) -> Result<Catalogue, NameTaken> {
        free("kind of queue", form.name, self.queues.names())?;
        self.queues.0.push(form);
        Ok(self)
    }

    /// Adds a topology to this catalogue.
    ///
    /// # Errors
    /// Fails if the name is taken.
    pub fn with_topology(mut self, form: &'static TopologyForm) -> Result<Catalogue, NameTaken> {
        free("topology", form.name, self.topologies.iter().map(|form| form.name))?;
        self.topologies.push(form);
        Ok(self)
    }

    /// Adds a workload to this catalogue.
    ///
    /// # Errors
    /// Fails if the name is taken.
    pub fn with_workload(mut self, form: &'static WorkloadForm) -> Result<Catalogue, NameTaken> {
        free("workload", form.name, self.workloads.iter().map(|form| form.name))?;
        self.workloads.push(form);
        Ok(self)
    }

    /// Adds a distribution of sizes to this catalogue.
    ///
    /// # Errors
    /// Fails if the name is taken.
    pub fn with_sizes(mut self, form: &'static SizeForm) -> Result<Catalogue, NameTaken> {
        free("distribution of sizes", form.name, self.sizes.iter().map(|form| form.name))?;
        self.sizes.push(form);
        Ok(self)
    }
}

fn free(
    what: &'static str,
    name: &'static str,
    mut taken: impl Iterator<Item = &'static str>,
) -> Result<(), NameTaken> {
    if taken.any(|other| other == name) { Err(NameTaken { what, name }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_once() {
        let error = Catalogue::built_in().with_queue(&QUEUES[2]).expect_err("there is one");
        assert_eq!(error.to_string(), "there is a kind of queue called \"red\" already; allowed: another name");
        assert!(Catalogue::built_in().with_topology(TOPOLOGIES[0]).is_err());
        assert!(Catalogue::built_in().with_workload(WORKLOADS[0]).is_err());
        assert!(Catalogue::built_in().with_sizes(SIZE_FORMS[0]).is_err());
    }
}
