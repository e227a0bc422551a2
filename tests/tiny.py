"""A search space of networks that train and trace in a fraction of a second."""

import atexit
import json
import shutil
import tempfile
from pathlib import Path

from hytas._engine import builtin_space_text


def _write(folder: str) -> str:
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    space = json.loads(builtin_space_text("hytas"))
    for gene in space["genes"]:
        gene["values"] = GENES[gene["name"]]
    path = Path(folder) / "tiny.json"
    path.write_text(json.dumps(space))
    return str(path)


GENES = {"depth": [1, 2], "embed_dim": [8, 12, 16, 24], "num_heads": [1, 2, 3], "mlp_ratio": [1, 2]}
SPACE = _write(tempfile.mkdtemp(prefix="hytas-tests-"))
"""The file of the space `hytas` with one or two narrow layers, 1K to 10K parameters."""
