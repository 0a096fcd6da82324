"""Single runs: preparation, results as tables, summaries, warnings, and the saved form."""
