//! Real programs over a simulated network, in real time.
//!
//! Each host of a scenario is a network namespace with a TUN device. The crate reads the IPv4 packets that programs
//! send from the device of their host. Each packet crosses the simulator's own links and queues
//! ([`sparelane_sim::LiveNetwork`]), and is written to the device of its destination when it is due there.
//!
//! | module | contents |
//! |---|---|
//! | [`bridge`] | the network: takes packets with their arrival times and returns them with their due times |
//! | [`ip`] | the parts of an IPv4 header that queues use, and the congestion mark |
//! | [`plan`] | the network, hosts and limits of an emulation, derived from a scenario |
//! | [`lateness`] | a histogram of the time by which packets were late |
//! | `exchange` | the thread that moves packets between devices and the bridge in real time |
//! | `handover` | receives open devices from the process that created them |
//! | `self_test` | measures the packet rate and the delay error of this machine |

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
