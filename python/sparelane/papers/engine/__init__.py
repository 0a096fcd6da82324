"""The engine of all reproductions: declarations of experiments, their runs, rows, claims and saved results."""
