//! Flows that wait for an idle interface to send a low-priority segment.
//!
//! The flows of one host share its interface as its priority queue would serve them: the highest priority first, and in
//! turn within a class.

use crate::records::CLASSES;
use std::collections::{BTreeMap, VecDeque};

/// A flow in its slot. The flow's number tells it from a later flow in the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Puller {
    pub(crate) slot: u32,
    pub(crate) flow: u32,
}

/// The waiting flows, by uplink and class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pullers {
    uplinks: BTreeMap<u32, [VecDeque<Puller>; CLASSES]>,
}

impl Pullers {
    /// Adds `puller`, which waits for `uplink` with a segment of `class`. Returns true if no flow waited before.
    pub(crate) fn wait(&mut self, uplink: u32, class: u8, puller: Puller) -> bool {
        let classes = self.uplinks.entry(uplink).or_default();
        let first = classes.iter().all(VecDeque::is_empty);
        classes[usize::from(class)].push_back(puller);
        first
    }

    /// Takes the flow whose turn it is at `uplink`, with the class of its segment.
    pub(crate) fn next(&mut self, uplink: u32) -> Option<(u8, Puller)> {
        let classes = self.uplinks.get_mut(&uplink)?;
        let class = classes.iter().position(|waiting| !waiting.is_empty())?;
        Some((class as u8, classes[class].pop_front()?))
    }

    /// Returns true if any flow waits for `uplink`.
    pub(crate) fn is_waiting(&self, uplink: u32) -> bool {
        self.uplinks.get(&uplink).is_some_and(|classes| classes.iter().any(|waiting| !waiting.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_priority_is_sent_first_and_equal_ones_take_turns() {
        let mut pullers = Pullers::default();
        let puller = |slot| Puller { slot, flow: slot };
        assert!(pullers.wait(7, 2, puller(0)));
        assert!(!pullers.wait(7, 1, puller(1)));
        assert!(!pullers.wait(7, 1, puller(2)));
        let order: Vec<_> =
            std::iter::from_fn(|| pullers.next(7)).map(|(class, puller)| (class, puller.slot)).collect();
        assert_eq!(order, [(1, 1), (1, 2), (2, 0)]);
        assert!(!pullers.is_waiting(7));
    }
}
