"""Terminal output: guarded standard streams, tables that fit the terminal, progress and warnings."""
