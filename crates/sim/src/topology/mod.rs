//! Ready-made networks, and networks from files.
