"""Products of satellite and airborne missions: what an agency's file means, beyond its format.

Each mission has a file, and a line here. hytas imports this package when it opens the first file.
"""

from hytas.missions import dlr, emit, neon, pace, prisma
from hytas.plugins import product

product(emit.matches, emit.refine)
product(prisma.matches, prisma.refine)
product(pace.matches, pace.refine)
product(neon.matches, neon.refine)
product(dlr.matches, dlr.refine, image_of=dlr._image_of)
