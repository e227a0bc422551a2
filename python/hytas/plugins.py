"""Plug-ins: a user's own networks, scores, searches, trainings, readers and exporters.

A plug-in is a Python file, or the module that an installed package names in the entry-point group
`hytas.plugins`. Its decorators put its entries into the tables of hytas, which call `fill` when
they are made. `docs/extending.md` has an example of each kind.
"""

import copyreg
import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from hytas.errors import InputError, one_line

GROUP = "hytas.plugins"
_PASSES = ("network", "none", "data", "ones")
T = TypeVar("T")
_Made = Callable[[T], T]
_Entry = tuple[str, str]
"""Kind and name of something that a plug-in brings."""


class _Table(NamedTuple):
    values: dict[str, Any]
    make: Callable[[str, Any], Any]
    built_in: frozenset[str]


_TABLES: dict[str, _Table] = {}
_ENTRIES: dict[_Entry, tuple[str, Any]] = {}
"""What is registered, with the name of its plug-in, or "" outside of one."""
_DIGESTS: dict[str, str] = {}
"""Name of each loaded plug-in -> SHA-256 of its file, in hex, or its version."""
_HYTAS = "hytas"
_SHIPPED = ["hytas.missions"]
"""Plug-ins of hytas itself that are not yet imported."""
_LOADING = [""]
"""Names of the plug-ins whose modules are being executed; the last one registers."""


def fill(
    kind: str,
    table: dict[str, Any],
    make: Callable[[str, Any], Any] = lambda name, entry: entry,
    built_in: Iterable[str] = (),
) -> None:
    """Let the entries of a kind into a table: those that there are, and those that come later.

    Args:
        table: name -> what hytas uses.
        make: name and entry -> what hytas uses.
        built_in: names that no plug-in may bring, besides those in the table.
    """
    filled = _Table(table, make, frozenset((*table, *built_in)))
    for (of, name), (_, entry) in _ENTRIES.items():
        if of == kind:
            _put(filled, kind, name, entry)
    _TABLES[kind] = filled


def _put(table: _Table | None, kind: str, name: str, entry: Any) -> None:
    if table is None:
        return
    if name in table.built_in:
        raise InputError(kind, name, "is built in", "choose another name")
    try:
        table.values[name] = table.make(name, entry)
    except TypeError as error:
        raise InputError(kind, name, one_line(error)) from None


def network(
    name: str, *, space: str | None = None, data: str | None = None
) -> _Made[Callable[..., Any]]:
    """Register the networks of a search space: a function of architecture, shape and drop.

    The network that it returns derives from `hytas.models.Network`.

    Args:
        space: its space file (docs/research.md), as text of TOML or JSON; None where `space` names
            the file.
        data: "scenes" or "images"; None for both.
    """
    if data not in (None, "scenes", "images"):
        raise InputError("data", data, "must be scenes or images")
    if not isinstance(space, str | None):
        raise InputError("space", space, "must be the text of a space file")

    def register(build: Callable[..., Any]) -> Callable[..., Any]:
        _register("network", name, build)
        if data is not None:
            _register("data", name, data)
        if space is not None:
            _register("space", name, space)
        return build

    return register


def proxy(name: str, pass_name: str = "data", **facts: Any) -> _Made[Callable[..., Any]]:
    """Register a proxy: a function of what its pass shows; larger scores are better.

    Args:
        pass_name: "network", a function of the untrained network, patches (N, P, P, bands) and
            labels (N,); "none", of architecture, shape and seed; "data" or "ones", of one layer,
            as those of `hytas.proxies.formulas`.
        facts: further fields of `hytas.proxies.Proxy`.
    """
    if pass_name not in _PASSES:
        raise InputError("pass_name", pass_name, f"must be one of {', '.join(_PASSES)}")
    return _decorator("proxy", name, lambda made: (made, {"pass_name": pass_name, **facts}))


def ranking(name: str) -> _Made[Callable[..., Any]]:
    """Register a ranking of finalists: figures of a finalist -> a number; larger is better."""
    return _decorator("ranking", name)


def strategy(name: str) -> _Made[type[Any]]:
    """Register a search strategy: a class with `ask` and `tell` (`hytas.search.strategies`)."""

    def checked(made: type[Any]) -> type[Any]:
        for method in ("ask", "tell"):
            if not callable(getattr(made, method, None)):
                raise InputError("strategy", name, f"needs a method {method}")
        return made

    return _decorator("strategy", name, checked)


def target(
    name: str, file: str, open_file: Callable[[Path], Callable[[Any], Any]]
) -> _Made[Callable[..., Any]]:
    """Register an export format that a race can score finalists in (`target`).

    The function (model, path, card) writes a `hytas.models.SensorModel`, a copy on the CPU, to a
    path. It raises an error if the target cannot run the model.

    Args:
        file: name of the file in the folder of a run.
        open_file: a written file -> a function of raw patches (n, P, P, bands), which returns the
            probabilities (n, C) that the target computes.
    """
    return _decorator("target", name, lambda made: (made, file, open_file))


def objective(name: str) -> _Made[Callable[..., Any]]:
    """Register an objective of a search: scores of proxies -> one number; larger is better.

    It is a combination of proxies: `NAME(snip,params)` calls it with the columns (n,) of snip and
    of params, for all candidates so far, and it returns an array (n,).
    """
    return _decorator("objective", name)


def loss(name: str) -> _Made[Callable[..., Any]]:
    """Register a loss of trainings, chosen by the recipe's `loss`.

    It is a function of logits (N, C) and class distributions (N, C) -> a scalar tensor.
    """
    return _decorator("loss", name)


def augmentation(name: str) -> _Made[Callable[..., Any]]:
    """Register an augmentation, chosen by the recipe's `augmentation`; it follows all others.

    It is a function of scaled patches (N, P, P, bands), which it leaves as they are, and a
    `torch.Generator` of all its random numbers -> patches.
    """
    return _decorator("augmentation", name)


def reference(name: str, title: str = "") -> _Made[Callable[..., Any]]:
    """Register a reference method: a `hytas.references.Task` and a function that is told of its
    progress -> `hytas.references.Predicted`.

    Args:
        title: in tables; "" is the name.
    """
    return _decorator("reference", name, lambda made: (made, title or name))


def reader(name: str, matches: Callable[[bytes, Path], bool]) -> _Made[Callable[..., Any]]:
    """Register the reader of a format: a function from a path to `hytas.data.record.Contents`.

    Args:
        matches: whether a file is one, by its first kilobyte and its path.
    """
    return _decorator("reader", name, lambda made: (matches, made))


def product(
    matches: Callable[[Any], bool],
    refine: Callable[[Any], Any],
    *,
    image_of: Callable[[Path], Path] | None = None,
) -> None:
    """Register a product: what the files of a mission mean, beyond their format.

    Of two products that match a file, the one that was registered last reads it.

    Args:
        matches: whether a file, as `hytas.data.record.Contents`, is one.
        refine: such contents -> contents with scaled values, wavelengths and place.
        image_of: any path -> the path of the image, if it is another file of the product; else
            the path as it is.
    """
    load_shipped()
    name = f"{refine.__module__}.{refine.__qualname__}".strip("_")
    _register("product", name, (matches, refine, image_of))


def load_shipped() -> None:
    """Import the plug-ins of hytas itself, before an entry of a user is registered."""
    while _SHIPPED:
        with _loading(_HYTAS):
            import_module(_SHIPPED.pop())


def _decorator(kind: str, name: str, entry: Callable[[T], Any] = lambda made: made) -> _Made[T]:
    def register(made: T) -> T:
        if not inspect.getdoc(made):
            raise InputError(kind, name, "needs a docstring, whose first line says what it does")
        _register(kind, name, entry(made))
        return made

    return register


def _register(kind: str, name: str, entry: Any) -> None:
    if not re.fullmatch(r"[A-Za-z][\w. -]*", name):
        raise InputError(kind, name, "must be letters, digits, '-', '_', '.' or spaces")
    owner, _ = _ENTRIES.get((kind, name), ("", None))
    if owner:
        raise InputError(kind, name, f"is registered twice: {owner} brings it, too")
    _put(_TABLES.get(kind), kind, name, entry)
    _ENTRIES[kind, name] = _LOADING[-1], entry


def unload(name: str) -> None:
    """Remove the entries of a plug-in from the tables, such as before another version of it."""
    _DIGESTS.pop(name, None)
    for kind, entry in [key for key, (owner, _) in _ENTRIES.items() if owner == name]:
        del _ENTRIES[kind, entry]
        if kind in _TABLES:
            _TABLES[kind].values.pop(entry, None)


def load_plugins(named: Sequence[str]) -> tuple[str, ...]:
    """Load plug-ins that the user names, and return their names, with whole paths.

    Args:
        named: paths that end in .py, or names of entry points of installed packages.
    """
    is_list = isinstance(named, Sequence) and not isinstance(named, str)
    if not is_list or not all(isinstance(name, str | Path) for name in named):
        raise InputError("plugins", named, "must be a list of paths or names")
    return tuple(dict.fromkeys(_load(str(name)) for name in named))


def loaded_plugins() -> dict[str, str]:
    """Return the name of each loaded plug-in with what identifies its version."""
    return dict(_DIGESTS)


def loaded_names(named: Iterable[str]) -> list[str]:
    """Return the plug-ins that the user named in place of those of a run: they may lie elsewhere.

    Raises:
        InputError: the user named no such plug-in. The folder of a run brings no code.
    """
    known = {Path(name).name: name for name in _DIGESTS}
    names = [re.sub(r"#[0-9a-f]{64}$", "", name) for name in named]  # a digest of version 0.2.0
    for name in names:
        if Path(name).name not in known:
            rule = "is code of the run, whose folder does not bring it"
            raise InputError("plugins", name, rule, "read it, then name it with `plugins`")
    return [known[Path(name).name] for name in names]


def _load(name: str) -> str:
    if not name.endswith(".py"):
        installed = {entry.name: entry for entry in entry_points(group=GROUP)}
        if name not in installed:
            others = f"; installed: {', '.join(sorted(installed))}" if installed else ""
            rule = f"is no path that ends in .py, and no installed plug-in{others}"
            raise InputError("plugins", name, rule)
        package = installed[name].dist
        with _loading(name):
            import_module(installed[name].module)
        _DIGESTS[name] = "" if package is None else package.version
        return name
    name = str(Path(name).absolute())
    try:
        source = Path(name).read_bytes()
    except FileNotFoundError:
        raise InputError("plugins", Path(name), "no such file") from None
    digest = hashlib.sha256(source).hexdigest()
    if _DIGESTS.get(name) != digest:
        unload(name)
        with _loading(name):
            _execute(name, source, digest)
        if not any(owner == name for owner, _ in _ENTRIES.values()):
            rule = f"brings nothing: no decorator of {__name__} is in it"
            raise InputError("plugins", name, rule)
        _DIGESTS[name] = digest
    return name


def _execute(name: str, source: bytes, digest: str) -> None:
    """Execute the source of a file; what it defines travels to workers by value."""
    from cloudpickle import register_pickle_by_value

    module = ModuleType(f"hytas_plugin_{digest[:16]}")
    module.__file__ = name
    sys.modules[module.__name__] = module
    register_pickle_by_value(module)
    exec(compile(source, name, "exec"), vars(module))
    for used in [each for each in sys.modules.values() if isinstance(each, ModuleType)]:
        if type(used) is not ModuleType:  # such as torch.classes, which cannot be pickled
            copyreg.pickle(type(used), _by_name)


def _by_name(module: ModuleType) -> tuple[Callable[[str], ModuleType], tuple[str]]:
    return import_module, (module.__name__,)


@contextmanager
def _loading(name: str) -> Iterator[None]:
    """Register entries under the name of a plug-in; refuse a module that fails."""
    if name != _HYTAS:
        load_shipped()
    _LOADING.append(name)
    try:
        yield
    except (Exception, SystemExit) as error:
        unload(name)
        if isinstance(error, InputError):
            raise
        rule = f"its module fails: {one_line(error)}"
        hint = "a plug-in is one file, or an installed package"
        hint = hint if isinstance(error, ImportError) else ""
        raise InputError("plugins", name, rule, hint) from error
    finally:
        _LOADING.pop()


_RECEIVED = [b""]
"""The entries that this worker got last, pickled."""


@dataclass(frozen=True)
class Carried:
    """A call that first registers the entries of the driver's plug-ins.

    Attributes:
        entries: of plug-ins, by cloudpickle: their functions travel, and no file is needed.
    """

    work: Callable[..., Any]
    entries: bytes

    @property
    def __name__(self) -> str:
        return self.work.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Register the entries, and call."""
        if _RECEIVED[0] != self.entries:
            from cloudpickle import loads

            load_shipped()
            for (kind, name), (owner, entry) in loads(self.entries).items():
                _put(_TABLES.get(kind), kind, name, entry)
                _ENTRIES[kind, name] = owner, entry
            _RECEIVED[0] = self.entries
        return self.work(*args, **kwargs)


def carried(work: Callable[..., T]) -> Callable[..., T]:
    """Return a function that can be called in workers which know no plug-in."""
    entries = {key: held for key, held in _ENTRIES.items() if held[0] != _HYTAS}
    if not entries:
        return work
    from cloudpickle import dumps

    return Carried(work, dumps(entries))


def brings(kind: str, name: str) -> bool:
    """Return whether a plug-in brings a name."""
    return (kind, name) in _ENTRIES
