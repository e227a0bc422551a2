"""Decisions about a trained network, from records of held-out pixels; pure, without torch."""
