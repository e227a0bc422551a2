"""Deliver the trained model: files, figures, maps, comparison and report."""
