"""The command line: one file for each command, and one table of the commands in `main`."""
