"""Plug-ins: a user's own networks, scores, searches, trainings, readers and exporters.

A plug-in is a Python file, or the module that an installed package names in the entry-point group
`hytas.plugins`. Its decorators put its entries into the tables of hytas, which call `fill` when
they are made. `docs/extending.md` has an example of each kind.
"""

import copyreg
import hashlib
import inspect
import linecache
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from hytas.errors import InputError, one_line

GROUP = "hytas.plugins"
MOST_BYTES = 2**20
"""Of a plug-in's file."""
_PASSES = ("network", "none", "data", "ones")
T = TypeVar("T")
_Made = Callable[[T], T]
_Entry = tuple[str, str]
"""Kind and name of something that a plug-in brings."""


@dataclass(eq=False)
class Plugin:
    """A plug-in that was loaded.

    Attributes:
        name: path of its file, or name of its entry point.
        digest: SHA-256 of its source, in hex.
        source: text of its file; "" for the module of an installed package.
        entries: by kind and name.
    """

    name: str
    digest: str
    source: str
    entries: dict[_Entry, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}#{self.digest}"


@dataclass(frozen=True)
class _Table:
    values: dict[str, Any]
    make: Callable[[str, Any], Any]
    built_in: frozenset[str]


_TABLES: dict[str, _Table] = {}
_LOADED: dict[str, Plugin] = {}
"""Name with digest -> plug-in; a module is executed once."""
_ACTIVE: dict[_Entry, tuple[Plugin | None, Any]] = {}
_SHIPPED = ["hytas.missions"]
"""Plug-ins of hytas itself that are not yet imported."""
_EXECUTED: list[Plugin] = []
"""The plug-in whose module is being executed, if any."""


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
    for (of, name), (_, entry) in _ACTIVE.items():
        if of == kind:
            _put(filled, kind, name, entry)
    _TABLES[kind] = filled


def _put(table: _Table, kind: str, name: str, entry: Any) -> None:
    _refuse_built_in(table, kind, name)
    try:
        table.values[name] = table.make(name, entry)
    except TypeError as error:
        raise InputError(kind, name, one_line(error)) from None


def _refuse_built_in(table: _Table, kind: str, name: str) -> None:
    if name in table.built_in:
        raise InputError(kind, name, "is built in", "choose another name")


def network(
    name: str, *, space: str | None = None, data: str | None = None
) -> _Made[Callable[..., Any]]:
    """Register the networks of a search space: a function of architecture, shape and drop.

    The network that it returns derives from `hytas.models.Network`.

    Args:
        space: its space file (docs/research.md), as text of TOML or JSON; None where `space` names
            the file. A run keeps the text with the plug-in.
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
    plugin = _EXECUTED[-1] if _EXECUTED else None
    if plugin is not None and (kind, name) in plugin.entries:
        raise InputError(kind, name, f"is registered twice in {plugin.name}")
    if plugin is not None:
        plugin.entries[kind, name] = entry
    else:
        _activate(None, {(kind, name): entry})


def _activate(plugin: Plugin | None, entries: Mapping[_Entry, Any]) -> None:
    """Put entries into the tables."""
    for kind, name in entries:
        owner, _ = _ACTIVE.get((kind, name), (None, None))
        same = owner is None or plugin is None or plugin.name == owner.name
        if owner and plugin and not same and owner.digest != plugin.digest:
            rule = f"brings the {kind} {name}, which {owner.name} brings, too"
            raise InputError("plugins", plugin.name, rule, "leave one out")
        if kind in _TABLES:
            _refuse_built_in(_TABLES[kind], kind, name)
    for (kind, name), entry in entries.items():
        _ACTIVE[kind, name] = plugin, entry
        if kind in _TABLES:
            _put(_TABLES[kind], kind, name, entry)


def unload(name: str) -> None:
    """Remove the entries of a plug-in from the tables, such as before another version of it."""
    for kind, entry in [key for key, (owner, _) in _ACTIVE.items() if owner and owner.name == name]:
        del _ACTIVE[kind, entry]
        if kind in _TABLES:
            _TABLES[kind].values.pop(entry, None)


def load_plugins(named: Sequence[str]) -> tuple[str, ...]:
    """Load plug-ins that the user names, and return their names with digests: `path#digest`.

    Args:
        named: a path that ends in .py, or the name of an entry point, with or without a digest. One
            with a digest is refused if its source has changed.
    """
    is_list = isinstance(named, Sequence) and not isinstance(named, str)
    if not is_list or not all(isinstance(name, str | Path) for name in named):
        raise InputError("plugins", named, "must be a list of paths or names")
    return tuple(dict.fromkeys(str(_load(str(name))) for name in named))


def check_loaded(named: Sequence[str]) -> None:
    """Refuse plug-ins that a run names and the user does not: its folder brings no code.

    Args:
        named: with their digests.
    """
    digests = {plugin.digest for plugin in _LOADED.values()}
    for name, digest in map(name_and_digest, named):
        if digest not in digests:
            rule = "is code of the run, whose folder does not bring it"
            hint = f"name the source with the SHA-256 {digest[:16]}... with `plugins`"
            raise InputError("plugins", name, rule, hint)


def name_and_digest(named: str) -> tuple[str, str]:
    """Return the name of a plug-in, and its digest or ""."""
    match = re.fullmatch(r"(.*)#([0-9a-f]{64})", named, re.DOTALL)
    return (match[1], match[2]) if match else (named, "")


def _load(named: str) -> Plugin:
    name, digest = name_and_digest(named)
    # A run names its plug-ins by digest; their files may lie elsewhere by now.
    same = (known for known in _LOADED.values() if known.digest == digest)
    plugin = _LOADED.get(named) or next(same, None)
    if plugin is None and name.endswith(".py"):
        path = Path(name).absolute()
        source = _text(path)
        plugin = _of_text(str(path), source) if digest in ("", _digest(source)) else None
    elif plugin is None:
        plugin = _of_entry_point(name)
    if plugin is None or digest not in ("", plugin.digest):
        rule, hint = "has changed since the run began", "put it back, or begin another run"
        raise InputError("plugins", name, rule, hint)
    _use(plugin)
    return plugin


def _use(plugin: Plugin) -> None:
    owners = {owner for owner, _ in _ACTIVE.values() if owner and owner.name == plugin.name}
    if owners != {plugin}:
        unload(plugin.name)
        _activate(plugin, plugin.entries)
    _LOADED[str(plugin)] = plugin


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError("plugins", path, f"has more than {MOST_BYTES} bytes")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError("plugins", path, "no such file") from None
    except UnicodeDecodeError:
        raise InputError("plugins", path, "is not a text file: it is not UTF-8") from None


def _of_text(name: str, source: str) -> Plugin:
    """Execute the source of a file; classes of its module travel to workers by their source."""
    from cloudpickle import register_pickle_by_value

    digest = _digest(source)
    plugin = Plugin(name, digest, source)
    if str(plugin) in _LOADED:
        return _LOADED[str(plugin)]
    module = ModuleType(f"hytas_plugin_{Path(name).stem.replace('-', '_')}_{digest[:12]}")
    module.__file__ = name
    # Tracebacks and exporters find the source here, also where the file is not.
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    sys.modules[module.__name__] = module
    register_pickle_by_value(module)
    with _executing(plugin):
        exec(compile(source, name, "exec"), vars(module))
    for used in [each for each in sys.modules.values() if isinstance(each, ModuleType)]:
        if type(used) is not ModuleType:  # such as torch.classes, which cannot be pickled
            copyreg.pickle(type(used), _by_name)
    if not plugin.entries:
        raise InputError("plugins", name, f"brings nothing: no decorator of {__name__} is in it")
    return plugin


def _by_name(module: ModuleType) -> tuple[Callable[[str], ModuleType], tuple[str]]:
    return import_module, (module.__name__,)


def _of_entry_point(name: str) -> Plugin:
    installed = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in installed:
        others = f"; installed: {', '.join(sorted(installed))}" if installed else ""
        rule = f"is no path that ends in .py, and no installed plug-in{others}"
        raise InputError("plugins", name, rule)
    text = "".join(_text(path) for path in _files_of(installed[name]))
    plugin = Plugin(name, _digest(text), "")
    if str(plugin) in _LOADED:
        return _LOADED[str(plugin)]
    with _executing(plugin):
        import_module(installed[name].module)
    if not plugin.entries:
        rule = "brings nothing, or was imported before it was named"
        raise InputError("plugins", name, rule)
    return plugin


def _files_of(entry: EntryPoint) -> list[Path]:
    """Return the source files of an entry point: its module, or all of its package."""
    top, *rest = entry.module.split(".")
    spec = None
    with suppress(AttributeError, ImportError, ValueError):
        spec = find_spec(top)  # a submodule's would import its parents
    places = [] if spec is None else spec.submodule_search_locations or []
    for folder in [Path(place, *rest) for place in places]:
        if (folder / "__init__.py").is_file():
            return sorted(folder.rglob("*.py"))
        if rest and folder.with_suffix(".py").is_file():
            return [folder.with_suffix(".py")]
    if rest or spec is None or spec.origin is None:
        raise InputError("plugins", entry.name, f"its module {entry.module} is not installed")
    return [Path(spec.origin)]


@contextmanager
def _executing(plugin: Plugin) -> Iterator[None]:
    """Record the entries of a module while it is executed; refuse a module that fails."""
    load_shipped()
    _EXECUTED.append(plugin)
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, InputError):
            raise
        rule = f"its module fails: {one_line(error)}"
        hint = "a plug-in is one file, or an installed package"
        raise InputError(
            "plugins", plugin.name, rule, hint if isinstance(error, ImportError) else ""
        ) from error
    finally:
        _EXECUTED.pop()


@dataclass(frozen=True)
class Carried:
    """A call that loads the plug-ins of the driver first, also where their files are not.

    Attributes:
        plugins: name, digest and source of each.
    """

    work: Callable[..., Any]
    plugins: tuple[tuple[str, str, str], ...]

    @property
    def __name__(self) -> str:
        return self.work.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Load the plug-ins, and call."""
        for name, digest, source in self.plugins:
            plugin = _LOADED.get(f"{name}#{digest}")
            if plugin is None:
                plugin = _of_text(name, source) if source else _of_entry_point(name)
            if plugin.digest != digest:
                raise InputError("plugins", name, "a worker has another version of it")
            _use(plugin)
        return self.work(*args, **kwargs)


def carried(work: Callable[..., T]) -> Callable[..., T]:
    """Return a function that can be called in workers which know no plug-in."""
    active = dict.fromkeys(plugin for plugin, _ in _ACTIVE.values() if plugin is not None)
    if not active:
        return work
    return Carried(work, tuple((one.name, one.digest, one.source) for one in active))


def with_owners(named: Sequence[str], used: Iterable[_Entry]) -> list[str]:
    """Return the names of loaded plug-ins, and of those that bring something that is used."""
    names = {name_and_digest(one)[1]: one for one in named}
    for owner, _ in (_ACTIVE[entry] for entry in used if entry in _ACTIVE):
        if owner is not None:
            names.setdefault(owner.digest, str(owner))
    return list(names.values())


def brings(kind: str, name: str) -> bool:
    """Return whether a loaded plug-in brings a name."""
    return (kind, name) in _ACTIVE
