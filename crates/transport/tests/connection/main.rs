//! Tests of a sender and a receiver on a simulated path: the segments sent, their times, and the window.

mod accurate_ecn;
mod batch;
mod controller_input;
mod ecn;
mod edge_cases;
mod full_interface;
mod go_back;
mod handshake;
mod hostile_peer;
mod idle;
mod memory;
mod next_segment;
mod pacing;
mod per_class_acks;
mod prr;
mod rack;
mod rc3;
mod recovery;
mod reordering;
mod soak;
mod solo_sender;
mod stream;
mod timeout;
mod window;
mod wire;
