//! Which random stream belongs to whom in a workload.
//!
//! A workload draws under its own number, and each of its objects under its own, so that no object's draws change
//! another's, and two workloads of a run do not draw alike.

use sparelane_core::{Domain, Stream};

/// The stream of `object` (a host's number, mostly) of the workload numbered `workload`.
pub(super) fn stream(seed: u64, domain: Domain, workload: u32, object: u32) -> Stream {
    Stream::new(seed, domain, u64::from(workload) << 32 | u64::from(object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_and_objects_draw_apart() {
        let first = |workload, object| stream(1, Domain::Arrivals, workload, object).next_u64();
        let draws = std::collections::BTreeSet::from([first(0, 0), first(0, 1), first(1, 0), first(1, 1)]);
        assert_eq!(draws.len(), 4);
        assert_eq!(first(0, 5), Stream::new(1, Domain::Arrivals, 5).next_u64());
    }
}
