"""The commands, one module each, with the name that the user types."""
