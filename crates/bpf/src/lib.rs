//! Congestion controllers inside the Linux kernel: BPF programs, their loader, and their telemetry.
//!
//! Each controller is one C file in `programs/`. The compiled programs are in `objects/` and shipped with the crate, so
//! users need no compiler. The tests compile each program for the host and compare it with the controller of the same
//! name in `sparelane-cc`.
//!
//! libbpf loads the programs. It needs libelf and zlib, which not every machine has, so it is the optional feature
//! `libbpf`. Without it, every function that needs the kernel returns [`BpfError::NotBuilt`], which names the missing
//! packages; all other functions work.

#![cfg(target_os = "linux")]

mod cgroup;
mod changes;
pub mod doctor;
pub mod error;
pub mod interface;
#[cfg_attr(not(feature = "libbpf"), path = "without_libbpf.rs")]
mod libbpf;
pub mod load;
pub mod loaded;
mod namespace;
mod netlink;
pub mod pins;
pub mod programs;
pub mod route;
pub mod settings;
pub mod telemetry;

pub use error::BpfError;
