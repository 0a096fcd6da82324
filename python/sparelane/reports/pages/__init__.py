"""Writes reports, each a self-contained HTML file for offline use."""
