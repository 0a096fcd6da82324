"""Sweeps: one scenario in many settings, under several schemes and seeds."""
