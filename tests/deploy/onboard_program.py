"""Where the C++ onboard runner lies, and how tests call it."""

import subprocess
from collections.abc import Callable
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "deploy" / "onboard"
Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]
