//! Real programs over a simulated network, in real time.
//!
//! Each host of a scenario is a network namespace with a TUN device. What its programs send comes out of the device as IPv4
//! packets; each crosses the simulator's own links and queues ([`sparelane_sim::LiveNetwork`]) and goes into the device of the
//! host that it is for when it is due there.
//!
//! | module | what is in it |
//! |---|---|
//! | [`bridge`] | packets in with the time, packets out with the time at which they are due: no clock, no device |
//! | [`ip`] | what a queue has to know of an IPv4 packet, and its mark |
//! | [`plan`] | what a scenario asks of the machine, and what cannot be emulated |
//! | [`lateness`] | how late packets were, as a histogram |
//! | `exchange` | devices and clock: one thread with ppoll |
//! | `self_test` | what this machine can keep |

pub mod bridge;
#[cfg(target_os = "linux")]
pub mod exchange;
#[cfg(target_os = "linux")]
pub mod handover;
pub mod ip;
pub mod lateness;
pub mod plan;
#[cfg(target_os = "linux")]
pub mod self_test;
