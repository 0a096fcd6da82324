//! Where flows come from.
