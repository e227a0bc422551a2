"""Classify a layer with a model of hytas, as a script of QGIS's Processing toolbox.

Processing > Toolbox > Scripts > Add Script to Toolbox. The algorithm runs the program `hytas`,
which may lie in an environment of its own. QGIS shows the map with class names and colours, because
`hytas classify` writes a style (.qml) beside it.
"""

import os
import shutil
import subprocess
from pathlib import Path

from qgis.core import (
    QgsProcessingAlgorithm,
    QgsProcessingException,
    QgsProcessingParameterBoolean,
    QgsProcessingParameterFile,
    QgsProcessingParameterRasterDestination,
    QgsProcessingParameterRasterLayer,
    QgsProcessingParameterString,
)


class HytasClassify(QgsProcessingAlgorithm):
    """Classify every pixel of a raster layer."""

    LAYER, MODEL, SMOOTH, PROGRAM, OUTPUT = "LAYER", "MODEL", "SMOOTH", "PROGRAM", "OUTPUT"

    def name(self):
        return "hytas_classify"

    def displayName(self):
        return "Classify a hyperspectral layer (hytas)"

    def group(self):
        return "hytas"

    def groupId(self):
        return "hytas"

    def shortHelpString(self):
        return (
            "Runs `hytas classify` on the file of a layer. The model is an ONNX file of "
            "`hytas export`, such as model.onnx. The layer must be of the model's sensor."
        )

    def createInstance(self):
        return HytasClassify()

    def initAlgorithm(self, config=None):
        self.addParameter(QgsProcessingParameterRasterLayer(self.LAYER, "Hyperspectral layer"))
        self.addParameter(
            QgsProcessingParameterFile(self.MODEL, "Model (ONNX)", fileFilter="ONNX (*.onnx)")
        )
        self.addParameter(
            QgsProcessingParameterBoolean(self.SMOOTH, "Smooth the map", defaultValue=True)
        )
        program = os.environ.get("HYTAS", shutil.which("hytas") or "hytas")
        self.addParameter(
            QgsProcessingParameterString(self.PROGRAM, "Program hytas", defaultValue=program)
        )
        self.addParameter(QgsProcessingParameterRasterDestination(self.OUTPUT, "Class map"))

    def processAlgorithm(self, parameters, context, feedback):
        layer = self.parameterAsRasterLayer(parameters, self.LAYER, context)
        cube = Path(layer.source().split("|")[0])
        if not cube.is_file():
            raise QgsProcessingException(f"The layer must be a file, not {layer.source()}")
        out = Path(self.parameterAsOutputLayer(parameters, self.OUTPUT, context))
        command = [
            self.parameterAsString(parameters, self.PROGRAM, context),
            "classify",
            self.parameterAsFile(parameters, self.MODEL, context),
            str(cube),
            "--out",
            str(out),
        ]
        if not self.parameterAsBool(parameters, self.SMOOTH, context):
            command += ["--smooth", "none"]
        feedback.pushCommandInfo(" ".join(command))
        # QGIS sets these for its own Python, which is not that of hytas.
        of_qgis = ("PYTHONPATH", "PYTHONHOME")
        own = {key: value for key, value in os.environ.items() if key not in of_qgis}
        done = subprocess.run(command, capture_output=True, text=True, env=own, check=False)
        feedback.pushInfo(done.stdout)
        if done.returncode:
            raise QgsProcessingException(done.stderr.strip() or "hytas ended with an error")
        return {self.OUTPUT: str(out)}
