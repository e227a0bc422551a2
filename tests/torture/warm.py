"""What the server of commands has imported and prepared, so that each fork works at once."""

import sklearn.svm  # noqa: F401
import tifffile  # noqa: F401
import torch

import hytas.cli.main
import hytas.run  # noqa: F401
from hytas.export.onnx_file import OPSET, trace

# The first export of a process takes two seconds more than the next.
trace(torch.nn.Identity().eval(), torch.zeros(2, 3), {}, (["a"], ["b"]), OPSET)
