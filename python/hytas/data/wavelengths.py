"""Compare the wavelengths of two scenes."""

import numpy as np
import numpy.typing as npt


def farthest_band(
    own: npt.NDArray[np.float64], known: npt.NDArray[np.float64]
) -> tuple[int, float] | None:
    """Return the band that lies farthest from its like, and one band spacing, both in nm.

    None if no band (B,) of `own` lies more than the spacing of `known` (B,) away.
    """
    if len(known) < 2:
        return None  # one band has no spacing
    spacing = float(np.median(np.abs(np.diff(known))))
    worst = int(np.argmax(np.abs(own - known)))
    return (worst, spacing) if abs(own[worst] - known[worst]) > spacing else None
