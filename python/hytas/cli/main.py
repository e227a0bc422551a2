"""`hytas`: a table of commands. A command is imported only when it is called."""

import importlib
import os
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from traceback import walk_tb

import click

from hytas.errors import InputError, escaped, is_out_of_memory, one_line

STARTED = time.time()
"""When the command began, for `--minutes`: before torch is imported."""
# Command -> short help. A command is a file and a function of its name.
COMMANDS = {
    "search": "Search, race, train, export and check a model for a scene under a budget.",
    "train": "Train one architecture on a scene.",
    "export": "Export a trained run to ONNX and TorchScript, checked against torch.",
    "supernet": "Train one set of weights for all networks of a budget, and export its subnets.",
    "references": "Fit SVM, random forest and published networks on the same pixels.",
    "benchmark": "Make a table of trained networks, to compare searches without training.",
    "analyse": "Measure tables of trained networks: scores, genes and predictors.",
    "score": "Score a file of architectures with proxies; write a table.",
    "proxies": "List the proxies: formula, source, options.",
    "space": "Count, sample and cost the architectures of a search space.",
    "classify": "Classify a whole scene with an exported model (no torch).",
    "predict": "Predict values of a scene or a table, or probabilities, with an exported model.",
    "update": "Write a model's new weights as a small file, and apply it.",
    "bench": "Measure speed and memory of an exported model on this machine.",
    "explain": "Show which bands and neighbours a model looks at.",
    "report": "Write one page about a run, or several next to each other.",
    "scenes": "List the scenes that are known by name.",
    "inspect": "Describe a scene, a model or a run folder.",
    "doctor": "Report what this machine and this installation can do.",
}


# How often a waiting thread of torch looks for work before it sleeps. By default libgomp looks for
# milliseconds. If another program uses a core, the threads then mostly wait for each other.
SPIN_COUNT = "3000"
MOST_SAID = 4000
"""Characters of a message, at most."""
INTERRUPTED = "interrupted: run the same command again to go on"


class LazyGroup(click.Group):
    """A group that lists the commands of `COMMANDS` and imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(f"hytas.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hytas", prog_name="hytas")
def hytas() -> None:
    """Find, train and ship the best transformer for a hyperspectral sensor."""


def run(arguments: Sequence[str] | None = None) -> None:
    """Run `hytas`. Bad input and errors of files become one line and exit status 2."""
    _share_cores()
    if arguments is None:
        _silence_libraries()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = hytas.main(
            given, prog_name="hytas", standalone_mode=False, obj=shlex.join(["hytas", *given])
        )
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo(INTERRUPTED, err=True)
        sys.exit(130)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()  # the help of a group, of several lines
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.message = _short(error.message)  # type: ignore[misc] # before it is shown
        error.show()
        sys.exit(error.exit_code)
    except (InputError, OSError) as error:
        _complain(f"error: {_spoken(error, given)}")
        sys.exit(2)
    except ModuleNotFoundError as error:  # of a machine that only classifies: docs/board.md
        name = error.name or ""
        if "." in name or name in ("", "hytas"):  # a broken installation
            raise
        _complain(f"error: this command needs the Python module {name}, which is not installed")
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(one_line(error)):
            raise
        _complain(
            f"error: out of memory ({str(error).splitlines()[0] if str(error) else 'no details'}); "
            "if the GPU ran out, --device cpu uses the machine's memory; files written so far stay"
        )
        sys.exit(1)
    sys.exit(status if isinstance(status, int) else 0)


def _spoken(error: Exception, arguments: Sequence[str]) -> str:
    """Return the error's text; errors of the operating system come without their numbers."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return f"{'standard output: ' if _is_output_lost(error) else ''}{error.strerror}"
    return error.render(_options_of(arguments)) if isinstance(error, InputError) else str(error)


def _options_of(arguments: Sequence[str]) -> Callable[[str], str]:
    """Return the function from an argument's name in Python to the command's option.

    A name that is no option of the command that `arguments` call becomes words.
    """
    command: click.Command | None = hytas
    context = click.Context(hytas)
    for word in arguments:
        if not isinstance(command, click.Group):
            break
        command = command.get_command(context, word) or command
    parameters = command.params if command is not None else []
    options = {
        name: max(parameter.opts, key=len)
        for parameter in parameters
        if isinstance(parameter, click.Option)
        for name in (parameter.name, max(parameter.opts, key=len)[2:].replace("-", "_"))
    }

    def option(argument: str) -> str:
        words = argument.replace("_", " ") if argument.isidentifier() else argument
        return options.get(argument, words)

    return option


def _is_output_lost(error: OSError) -> bool:
    """Return whether printing failed, as on a full disk; if so, discard standard output.

    Otherwise Python would try to print again when it ends, and show an error of its own.
    """
    frames = (frame.f_code for frame, _ in walk_tb(error.__traceback__))
    if click.echo.__code__ not in frames:
        return False
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True


def _short(text: str) -> str:
    """Return a message as one line without control characters, shortened if it is very long."""
    line = escaped(text)
    return line if len(line) <= MOST_SAID else f"{line[:MOST_SAID]} ..."


def _complain(text: str) -> None:
    """Print a message to standard error, if that is still open."""
    with suppress(OSError):
        click.echo(_short(text), err=True)


def _share_cores() -> None:
    """Let waiting threads sleep early, unless the environment says how they wait.

    libgomp reads the variable when torch is imported, which happens later.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)


def _silence_libraries() -> None:
    """Keep warnings of libraries off the screen, also those of worker processes.

    Those of this process go to the `run.log` of a run. A warning that the user has switched on by
    these variables stays.
    """
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    if not sys.warnoptions:
        warnings.showwarning = lambda *_, **__: None


def run_search() -> None:
    """Run `hytas-search`, the same command as `hytas search`."""
    _silence_libraries()
    run(["search", *sys.argv[1:]])
