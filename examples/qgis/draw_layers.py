"""Draw the layers of the GIS tutorial as QGIS shows them, without a window.

    QT_QPA_PLATFORM=offscreen python3 examples/qgis/draw_layers.py field docs/images

needs the Python of QGIS (Debian: python3-qgis). `field` holds scene.tif, fields.gpkg and map.tif.
"""

import sys
from pathlib import Path

from qgis.core import (
    QgsApplication,
    QgsCategorizedSymbolRenderer,
    QgsContrastEnhancement,
    QgsFillSymbol,
    QgsLayerTree,
    QgsLayoutExporter,
    QgsLayoutItemLabel,
    QgsLayoutItemLegend,
    QgsLayoutItemMap,
    QgsLayoutPoint,
    QgsLayoutSize,
    QgsMapLayer,
    QgsMultiBandColorRenderer,
    QgsPrintLayout,
    QgsProject,
    QgsRasterLayer,
    QgsRendererCategory,
    QgsUnitTypes,
    QgsVectorLayer,
)
from qgis.PyQt.QtGui import QFont

RED, GREEN, BLUE = 22, 8, 4  # near 850, 550 and 465 nm: plants are red
MM = QgsUnitTypes.LayoutMillimeters


def false_colours(path: Path) -> QgsRasterLayer:
    """Return the scene with plants in red, stretched between its 2nd and 98th percentiles."""
    layer = QgsRasterLayer(str(path), "scene.tif")
    renderer = QgsMultiBandColorRenderer(layer.dataProvider(), RED, GREEN, BLUE)
    layer.setRenderer(renderer)
    layer.setContrastEnhancement(QgsContrastEnhancement.StretchToMinimumMaximum)
    return layer


def polygons(path: Path, field: str, colours: dict[str, str]) -> QgsVectorLayer:
    """Return the polygons, each class with its colour on the map."""
    layer = QgsVectorLayer(str(path), "fields.gpkg", "ogr")
    categories = []
    for name in sorted(layer.uniqueValues(layer.fields().indexOf(field))):
        symbol = QgsFillSymbol.createSimple({"color": colours[name], "outline_color": "white"})
        categories.append(QgsRendererCategory(name, symbol, name))
    layer.setRenderer(QgsCategorizedSymbolRenderer(field, categories))
    return layer


def draw(path: Path, title: str, layers: list[QgsMapLayer], legend_of: QgsMapLayer) -> None:
    """Write a picture of layers, the first on top, with the legend of one of them."""
    project = QgsProject.instance()
    layout = QgsPrintLayout(project)
    layout.initializeDefaults()
    layout.pageCollection().page(0).setPageSize(QgsLayoutSize(210, 122, MM))
    place = QgsLayoutItemMap(layout)
    place.attemptMove(QgsLayoutPoint(4, 12, MM))
    place.attemptResize(QgsLayoutSize(124, 106, MM))
    place.setLayers(layers)
    place.setExtent(layers[-1].extent())
    place.setFrameEnabled(True)
    layout.addLayoutItem(place)
    label = QgsLayoutItemLabel(layout)
    label.setText(title)
    label.setFont(QFont("DejaVu Sans", 12))
    label.attemptMove(QgsLayoutPoint(4, 3, MM))
    label.attemptResize(QgsLayoutSize(200, 8, MM))
    layout.addLayoutItem(label)
    legend = QgsLayoutItemLegend(layout)
    legend.setAutoUpdateModel(False)
    tree = QgsLayerTree()
    tree.addLayer(legend_of)
    legend.model().setRootGroup(tree)
    legend.attemptMove(QgsLayoutPoint(134, 10, MM))
    layout.addLayoutItem(legend)
    settings = QgsLayoutExporter.ImageExportSettings()
    settings.dpi = 100
    QgsLayoutExporter(layout).exportToImage(str(path), settings)


def main() -> None:
    """Draw the polygons on the scene, and the map."""
    field, out = Path(sys.argv[1]), Path(sys.argv[2])
    application = QgsApplication([], False)
    application.initQgis()
    scene = false_colours(field / "scene.tif")
    classes = QgsRasterLayer(str(field / "map.tif"), "map.tif")  # its style is in map.qml
    colours = {entry.label: entry.color.name() for entry in classes.renderer().classes()}
    drawn = polygons(field / "fields.gpkg", "cover", colours)
    QgsProject.instance().addMapLayers([scene, drawn, classes], False)
    draw(out / "gis-polygons.png", "The scene and the polygons", [drawn, scene], drawn)
    draw(out / "gis-map.png", "The map that hytas made", [classes], classes)
    application.exitQgis()


if __name__ == "__main__":
    main()
