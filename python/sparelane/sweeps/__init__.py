"""Sweeps: one scenario in many settings, with several schemes and seeds."""
