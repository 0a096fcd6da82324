"""Saved results: tidy rows, the manifest that records their origin, and the kinds of folders."""
