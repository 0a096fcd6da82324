//! Controllers inside the Linux kernel: BPF programs, their loader, and what they tell.
//!
//! Each controller is one C file in `programs/`, compiled once into `objects/` and shipped, so that loading needs no compiler.
//! `cargo test` holds each program, compiled for the host, against the controller of the same name in `sparelane-cc`.

#![cfg(target_os = "linux")]

mod btf;
mod cgroup;
mod changes;
pub mod doctor;
mod elf;
pub mod error;
pub mod kernel;
pub mod link;
pub mod load;
pub mod loaded;
mod namespace;
mod netlink;
pub mod object;
pub mod pins;
pub mod programs;
pub mod route;
pub mod settings;
mod sys;
pub mod telemetry;

pub use error::BpfError;
