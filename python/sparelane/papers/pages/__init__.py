"""Pages and text about reproduced experiments."""
