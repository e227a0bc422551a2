"""What reaches the terminal: names of files move no cursor, and a full disk is one plain line."""

from pathlib import Path

import numpy as np

from commands import Run
from hytas.errors import InputError, escaped

EVIL = "a\x1b[2J\nerror: no\r\x07\x9b31m\u202e\u2028b"


def clean(text: str) -> None:
    """Each line is printable, and none was forged."""
    for line in text.split("\n"):
        assert escaped(line) == line
    assert not any(line.startswith("error: no") for line in text.split("\n"))


def test_escaped() -> None:
    assert escaped("plain µm 12") == "plain µm 12"
    assert escaped(EVIL) == "a\\x1b[2J\\nerror: no\\r\\x07\\x9b31m\\u202e\\u2028b"
    assert escaped("\udc80") == "\\udc80"
    assert escaped(escaped(EVIL)) == escaped(EVIL)
    assert str(InputError(f"data: {EVIL}")) == f"data: {escaped(EVIL)}"


def test_names_in_files_move_no_cursor(tmp_path: Path, hytas: Run) -> None:
    path = tmp_path / "scene.npz"
    generator = np.random.default_rng(0)
    cube, labels = generator.integers(0, 9, (9, 8, 4)), generator.integers(0, 3, (9, 8))
    np.savez(path, **{EVIL: cube, f"{EVIL}2": labels})
    done = hytas("inspect", path)
    assert done.returncode == 0, done.stderr
    assert "\\x1b[2J" in done.stdout
    clean(done.stdout)
    np.savez(path, **{EVIL: cube, f"{EVIL}2": labels, f"{EVIL}3": labels})
    for arguments in (("search", "--data", path, "--budget", "60K-params"), ("inspect", path)):
        done = hytas(*arguments)
        clean(done.stderr)
        clean(done.stdout)
        assert "name one with --labels-key" in done.stderr + done.stdout


def test_arguments_move_no_cursor(hytas: Run) -> None:
    done = hytas("inspect", EVIL)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    clean(done.stderr)
    clean(hytas("search", f"--{EVIL}").stderr)
