"""Products of satellite missions: what an agency's file means, beyond its format."""
