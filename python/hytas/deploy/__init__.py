"""An exported model and a scene make a map; imports numpy and onnxruntime, never torch."""

from .model import DeployedModel
from .providers import working_providers
from .scene import ClassMap, Strip, classify_scene, classify_strips

__all__ = [
    "ClassMap",
    "DeployedModel",
    "Strip",
    "classify_scene",
    "classify_strips",
    "working_providers",
]
