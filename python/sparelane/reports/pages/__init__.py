"""Reports: one HTML file that opens offline, with everything in it."""
