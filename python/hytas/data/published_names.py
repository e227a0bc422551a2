"""Class names of benchmark scenes, which are recognised by the pixel counts of their classes."""

_INDIAN_PINES = (
    "Alfalfa",
    "Corn-notill",
    "Corn-mintill",
    "Corn",
    "Grass-pasture",
    "Grass-trees",
    "Grass-pasture-mowed",
    "Hay-windrowed",
    "Oats",
    "Soybean-notill",
    "Soybean-mintill",
    "Soybean-clean",
    "Wheat",
    "Woods",
    "Buildings-Grass-Trees-Drives",
    "Stone-Steel-Towers",
)
# The class order of SpectralFormer and HyTAS (supplement, table 3), as indices into the usual one.
_HYTAS_ORDER = (1, 2, 3, 4, 5, 7, 9, 10, 11, 12, 13, 14, 15, 0, 6, 8)
_SALINAS = (
    "Brocoli_green_weeds_1",
    "Brocoli_green_weeds_2",
    "Fallow",
    "Fallow_rough_plow",
    "Fallow_smooth",
    "Stubble",
    "Celery",
    "Grapes_untrained",
    "Soil_vinyard_develop",
    "Corn_senesced_green_weeds",
    "Lettuce_romaine_4wk",
    "Lettuce_romaine_5wk",
    "Lettuce_romaine_6wk",
    "Lettuce_romaine_7wk",
    "Vinyard_untrained",
    "Vinyard_vertical_trellis",
)
_PAVIA_U = (
    "Asphalt",
    "Meadows",
    "Gravel",
    "Trees",
    "Metal sheets",
    "Bare soil",
    "Bitumen",
    "Bricks",
    "Shadows",
)
_KSC = (
    "Scrub",
    "Willow swamp",
    "CP hammock",
    "CP/oak",
    "Slash pine",
    "Oak/broadleaf",
    "Hardwood swamp",
    "Graminoid marsh",
    "Spartina marsh",
    "Cattail marsh",
    "Salt marsh",
    "Mud flats",
    "Water",
)
_HOUSTON = (
    "Healthy grass",
    "Stressed grass",
    "Synthetic grass",
    "Tree",
    "Soil",
    "Water",
    "Residential",
    "Commercial",
    "Road",
    "Highway",
    "Railway",
    "Parking lot 1",
    "Parking lot 2",
    "Tennis court",
    "Running track",
)

# Labelled pixels of each class, in the order of the ids -> the classes' names.
_NAMES: dict[tuple[int, ...], tuple[str, ...]] = {
    (
        *(46, 1428, 830, 237, 483, 730, 28, 478),
        *(20, 972, 2455, 593, 205, 1265, 386, 93),
    ): _INDIAN_PINES,
    (
        *(1434, 834, 234, 497, 747, 489, 968, 2468),
        *(614, 212, 1294, 380, 95, 54, 26, 20),
    ): tuple(_INDIAN_PINES[i] for i in _HYTAS_ORDER),
    (
        *(2009, 3726, 1976, 1394, 2678, 3959, 3579, 11271),
        *(6203, 3278, 1068, 1927, 916, 1070, 7268, 1807),
    ): _SALINAS,
    # Salinas-A: ids 1 and 10 to 14 of Salinas.
    (391, 1343, 616, 1525, 674, 799): (_SALINAS[0], *_SALINAS[9:14]),
    (6631, 18649, 2099, 3064, 1345, 5029, 1330, 3682, 947): _PAVIA_U,
    # Training and test pixels of the fixed split together (table 5).
    (6852, 18686, 2207, 3436, 1378, 5104, 1356, 3878, 1026): _PAVIA_U,
    (761, 243, 256, 252, 161, 229, 105, 431, 520, 404, 419, 503, 927): _KSC,
    (
        *(1251, 1254, 697, 1244, 1242, 325, 1268, 1244),
        *(1252, 1227, 1235, 1233, 469, 428, 660),
    ): _HOUSTON,
}


# By scene, in the order of a single label map.
CLASS_NAMES = {
    "indian_pines": _INDIAN_PINES,
    "salinas": _SALINAS,
    "houston2013": _HOUSTON,
    "pavia_u": _PAVIA_U,
    "ksc": _KSC,
}


def known_class_names(counts: tuple[int, ...]) -> tuple[str, ...] | None:
    """Return the class names of the benchmark scene with these pixel counts, or None."""
    return _NAMES.get(counts)
