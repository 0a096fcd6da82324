//! Flows of another source, whose applications write in pieces.

use crate::flow::{FlowSource, FlowSpec, Writes};
use sparelane_core::Time;
use std::fmt;

/// The flows of a source, each written as [`Writes`] says.
pub struct Paced {
    source: Box<dyn FlowSource>,
    writes: Writes,
}

impl Paced {
    /// The flows of `source`, written as `writes` says.
    pub fn new(source: Box<dyn FlowSource>, writes: Writes) -> Paced {
        Paced { source, writes }
    }
}

impl FlowSource for Paced {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        self.source.next_flow().map(|flow| FlowSpec { writes: Some(self.writes), ..flow })
    }

    fn follow(&mut self, waiter: u64, now: Time) -> Option<FlowSpec> {
        self.source.follow(waiter, now).map(|flow| FlowSpec { writes: Some(self.writes), ..flow })
    }
}

impl fmt::Debug for Paced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paced").field("writes", &self.writes).finish_non_exhaustive()
    }
}
