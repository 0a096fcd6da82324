"""Results as data: tidy rows, and the manifest that says where they come from."""
