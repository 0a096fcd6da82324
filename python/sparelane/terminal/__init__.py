"""Output for people: guarded standard streams, tables that fit the terminal, progress and error messages."""
