//! Controllers inside the Linux kernel: BPF programs, their loading, and what they tell.
//!
//! Each controller is one C file in `programs/`, compiled once into `objects/` and shipped, so that loading needs no
//! compiler. `cargo test` holds each program, compiled for the host, against the controller of the same name in
//! `sparelane-cc`.
//!
//! libbpf loads them. It needs libraries that a machine may lack, so that it is a feature: without it all that does not
//! reach into the kernel is there still, and what does is refused with the packages that are missing.

#![cfg(target_os = "linux")]

mod cgroup;
mod changes;
pub mod doctor;
pub mod error;
#[cfg_attr(not(feature = "libbpf"), path = "without_libbpf.rs")]
mod libbpf;
pub mod link;
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
