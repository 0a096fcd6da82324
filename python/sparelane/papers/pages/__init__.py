"""The pages and texts about reproduced experiments: an HTML report, Markdown pages, and tables in the terminal."""
