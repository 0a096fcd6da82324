"""Figures and pages of runs and sweeps."""
