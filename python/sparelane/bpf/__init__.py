"""Controllers in the running Linux kernel, as BPF programs."""
