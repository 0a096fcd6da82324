//! Assigns random streams to the objects of a workload.
//!
//! A workload draws under its own number, and each of its objects under its own. No object's draws change another's,
//! and two workloads of a run draw independently.

use sparelane_core::{Domain, Stream};

/// Returns the stream of `object` (usually a host's number) of the workload numbered `workload`.
pub(super) fn stream(seed: u64, domain: Domain, workload: u32, object: u32) -> Stream {
    Stream::new(seed, domain, u64::from(workload) << 32 | u64::from(object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_and_objects_draw_independently() {
        let first = |workload, object| stream(1, Domain::Arrivals, workload, object).next_u64();
        let draws = std::collections::BTreeSet::from([first(0, 0), first(0, 1), first(1, 0), first(1, 1)]);
        assert_eq!(draws.len(), 4);
        assert_eq!(first(0, 5), Stream::new(1, Domain::Arrivals, 5).next_u64());
    }
}
