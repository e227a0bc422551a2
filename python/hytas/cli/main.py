"""`hytas`: one table of commands, each imported only when it is called."""

import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from traceback import walk_tb

import click

from hytas.errors import InputError, escaped, is_out_of_memory, one_line

# command -> (module, function, short help). A new command is one file and one line here.
COMMANDS = {
    "search": (
        "search",
        "search",
        "Search, race, train, export and check: a scene and a budget in, a model out.",
    ),
    "train": ("train", "train", "Train one architecture on a scene."),
    "export": (
        "export",
        "export",
        "Export a trained run to ONNX and TorchScript, checked against torch.",
    ),
    "supernet": (
        "supernet",
        "supernet",
        "Train one set of weights for all networks of a budget, and export its subnets.",
    ),
    "references": (
        "references",
        "references",
        "Fit SVM, random forest and published networks on the same pixels.",
    ),
    "analyse": ("analyse", "analyse", "Tell what scores are worth on networks that were trained."),
    "score": ("score", "score", "Score given architectures with proxies, into a table."),
    "proxies": ("proxies", "proxies", "List the proxies: formula, source, options."),
    "space": ("space", "space", "Count, sample and cost the architectures of a search space."),
    "classify": (
        "classify",
        "classify",
        "Classify a whole scene with an exported model (no torch).",
    ),
    "bench": ("bench", "bench", "Measure speed and memory of an exported model on this machine."),
    "inspect": ("inspect", "inspect", "Tell what a scene, a model or a run folder holds."),
    "doctor": ("doctor", "doctor", "Tell what this machine and this installation can do."),
}
# Former names, which scripts may have; no help lists them.
FORMER = {"baselines": "references"}


# How often a thread of torch's looks for work before it sleeps. libgomp looks for milliseconds;
# where another program holds a core, the threads then wait for each other most of the time.
SPIN_COUNT = "3000"
MOST_SAID = 4000
"""Characters of a message."""
INTERRUPTED = "interrupted: the same command resumes from what was written"


class LazyGroup(click.Group):
    """A group that lists its commands from `COMMANDS` and imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(FORMER.get(cmd_name, cmd_name))
        if entry is None:
            return None
        module, function, _ = entry
        command = getattr(importlib.import_module(f"hytas.cli.{module}"), function)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, _, short) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hytas", prog_name="hytas")
def hytas() -> None:
    """Find, train and ship the best transformer for a hyperspectral sensor."""


def run(arguments: Sequence[str] | None = None) -> None:
    """Run `hytas`: bad input and failing files become one line and exit status 2."""
    _share_cores()
    try:
        status = hytas.main(
            list(sys.argv[1:] if arguments is None else arguments),
            prog_name="hytas",
            standalone_mode=False,
        )
    except click.exceptions.Abort:
        click.echo(INTERRUPTED, err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.message = _short(error.message)  # type: ignore[misc] # before it is shown
        error.show()
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        click.echo(INTERRUPTED, err=True)
        sys.exit(130)
    except (InputError, OSError) as error:
        _complain(f"error: {_spoken(error)}")
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(one_line(error)):
            raise
        _complain(
            f"error: out of memory ({str(error).splitlines()[0] if str(error) else 'no details'}); "
            "where a GPU is short, --device cpu takes the machine's; what was written stays"
        )
        sys.exit(1)
    sys.exit(status if isinstance(status, int) else 0)


def _spoken(error: Exception) -> str:
    """What is wrong; of the system's errors without their numbers."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return f"{'standard output: ' if _is_output_lost(error) else ''}{error.strerror}"
    return str(error)


def _is_output_lost(error: OSError) -> bool:
    """Whether it was printing that failed, as on a full disk; then standard output is let go.

    Python would try again when it ends, and say so in words of its own.
    """
    frames = (frame.f_code for frame, _ in walk_tb(error.__traceback__))
    if click.echo.__code__ not in frames:
        return False
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True


def _short(text: str) -> str:
    """A message as one line that moves no cursor, and that a terminal shows at once."""
    line = escaped(text)
    return line if len(line) <= MOST_SAID else f"{line[:MOST_SAID]} ..."


def _complain(text: str) -> None:
    """Print a message, where standard error takes it."""
    with suppress(OSError):
        click.echo(_short(text), err=True)


def _share_cores() -> None:
    """Let waiting threads sleep early, unless the environment says how they wait.

    libgomp reads it when torch is imported, which is later.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)


def run_search() -> None:
    """Run `hytas-search`, the same command as `hytas search`."""
    run(["search", *sys.argv[1:]])
