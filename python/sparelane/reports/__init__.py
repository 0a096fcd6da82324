"""Draws figures and writes pages of runs and sweeps."""
