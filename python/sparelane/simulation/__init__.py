"""One simulation run: starting it, its result as tables, its summary, warnings and saved form."""
