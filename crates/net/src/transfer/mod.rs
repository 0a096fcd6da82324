//! Files and folders, from one host to another.
//!
//! The sender offers items on the control stream; the receiver says which it wants, and how much of each an earlier attempt has
//! left. Each file comes in a flow of its own, and both sides take its BLAKE3 on the way; a file gets its name when all of it is
//! there, on the disk, and right.

pub mod folder;
pub mod message;
pub mod name;
