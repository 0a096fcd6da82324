"""Figures of runs and sweeps: what is in them (`panel`, `of_run`, `of_sweep`), and how they are drawn."""
