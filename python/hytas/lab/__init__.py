"""Tools for research around runs; the core does not import them."""
