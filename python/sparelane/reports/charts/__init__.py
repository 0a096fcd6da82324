"""Figures of runs and sweeps: their content (`panel`, `of_run`, `of_sweep`), and a Matplotlib renderer (`draw`)."""
