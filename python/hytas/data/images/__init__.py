"""Sets of labelled images: folders, arrays, and those known by name."""
