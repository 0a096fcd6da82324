//! Conversations between a sender and a receiver: what is sent, when, and what the window does.

mod alone;
mod batch;
mod edges;
mod evidence;
mod full_interface;
mod handshake;
mod heard;
mod marks;
mod memory;
mod next_segment;
mod pace;
mod rack;
mod rc3;
mod recovery;
mod reduction;
mod reordering;
mod soak;
mod strangers;
mod stream;
mod timeout;
mod window;
mod wire;
