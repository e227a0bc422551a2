"""Choose an architecture: search by proxies, and race the finalists."""
