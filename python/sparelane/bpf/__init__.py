"""BPF programs with controllers in the running Linux kernel."""
