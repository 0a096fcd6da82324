"""`python -m sparelane`: the command line."""

from sparelane.cli import main

main(prog_name="sparelane")
