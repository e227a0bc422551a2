"""Make the map of a scene with an exported model; imports numpy and onnxruntime, never torch."""

from hytas.deploy.model import DeployedModel
from hytas.deploy.providers import working_providers
from hytas.deploy.scene import ClassMap, Strip, classify_scene, classify_strips, classify_whole
from hytas.deploy.values import predict_scene

__all__ = [
    "ClassMap",
    "DeployedModel",
    "Strip",
    "classify_scene",
    "classify_strips",
    "classify_whole",
    "predict_scene",
    "working_providers",
]
