"""Readers: one file for each library of the field; each makes a record of a file."""
