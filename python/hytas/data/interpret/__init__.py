"""What the arrays of a file mean: rules for axes, bands, wavelengths, no data and place."""
