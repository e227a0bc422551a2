"""Published networks, trained by their own recipes; `hytas references` runs them."""
