"""The command line: parse and show."""
