//! Flows that wait for their host's interface to be idle, to send a low-priority segment.
//!
//! Flows of one host share its interface as its priority queue would have them: the highest priority
//! first, and within a class in turn.

use crate::records::CLASSES;
use std::collections::{BTreeMap, VecDeque};

/// A flow in its slot; the number tells a later flow in the same slot apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Puller {
    pub(crate) slot: u32,
    pub(crate) flow: u32,
}

/// The flows that wait, by uplink and class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pullers {
    uplinks: BTreeMap<u32, [VecDeque<Puller>; CLASSES]>,
}

impl Pullers {
    /// `puller` waits for `uplink` with a segment of `class`. Returns whether nobody waited before.
    pub(crate) fn wait(&mut self, uplink: u32, class: u8, puller: Puller) -> bool {
        let classes = self.uplinks.entry(uplink).or_default();
        let first = classes.iter().all(VecDeque::is_empty);
        classes[usize::from(class)].push_back(puller);
        first
    }

    /// The flow whose turn it is at `uplink`, with the class it waited in.
    pub(crate) fn next(&mut self, uplink: u32) -> Option<(u8, Puller)> {
        let classes = self.uplinks.get_mut(&uplink)?;
        let class = classes.iter().position(|waiting| !waiting.is_empty())?;
        Some((class as u8, classes[class].pop_front()?))
    }

    /// Whether anybody waits for `uplink`.
    pub(crate) fn is_waiting(&self, uplink: u32) -> bool {
        self.uplinks.get(&uplink).is_some_and(|classes| classes.iter().any(|waiting| !waiting.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_priority_goes_first_and_equals_take_turns() {
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
