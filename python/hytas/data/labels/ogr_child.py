"""Read a file of vector labels with OGR (pyogrio), in a child process.

OGR is a large C++ library, and files may be damaged or hostile. So the child has one driver, no
network, and limits of memory and time; if it crashes, the parent only reports that.
The child imports nothing of hytas, so that it starts quickly.
"""

import json
import os
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

MOST_BYTES = 1024 * 2**20
MOST_SECONDS = 60
MOST_TEXT = 2**27
"""Bytes of the answer, without coordinates."""

# Every connection goes to a port where nothing listens; no file but the named one is opened.
SAFE = {
    "GDAL_HTTP_PROXY": "http://127.0.0.1:9",
    "GDAL_HTTPS_PROXY": "http://127.0.0.1:9",
    "GDAL_HTTP_MAX_RETRY": "0",
    "GDAL_HTTP_CONNECTTIMEOUT": "1",
    "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": "{none}",
    "PROJ_NETWORK": "OFF",
    "OGR_SQLITE_PRAGMA": "trusted_schema=OFF",
}


def allow(drivers: set[str], config: dict[str, str]) -> None:
    """Remove all drivers of OGR except these, and set its configuration.

    Raises:
        RuntimeError: another driver is still there.
    """
    import pyogrio
    from pyogrio._ogr import _register_drivers

    others = sorted(set(pyogrio.list_drivers()) - drivers)
    pyogrio.set_gdal_config_options({**SAFE, **config, "OGR_SKIP": ",".join(others)})
    _register_drivers()
    if extra := set(pyogrio.list_drivers()) - drivers:
        raise RuntimeError(f"drivers of GDAL cannot be removed: {', '.join(sorted(extra))}")


def read(
    path: str,
    layer: str | None,
    most_shapes: int,
    most_coordinates: int,
    options: dict[str, str],
    class_fields: list[str],
    colour_fields: list[str],
    encoding: str | None = None,
) -> tuple[dict[str, Any], bytes]:
    """Return the facts of a layer, and its geometries as well-known binary, one after the other.

    Args:
        path: the file.
        layer: its name; None for the only one.
        most_shapes: limit of the number of features.
        most_coordinates: limit of the bytes of all geometries.
        options: of the driver, for opening the file.
        class_fields: names of fields of classes, in lower case; if one is there, no others are
            read.
        colour_fields: names of fields of colours, in lower case, which are read as well.
        encoding: of texts; None leaves it to the driver.

    Returns:
        "layers" alone if none or several could be meant; else "crs", "fields" (name -> values),
        "sizes" (bytes of each geometry, -1 where there is none) and "warnings"; "many" is True if
        there are too many shapes or coordinates. Then the bytes.
    """
    import pyogrio
    import pyogrio.raw

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        layers = [str(name) for name, kind in pyogrio.list_layers(path) if kind is not None]
        if (layer is None and len(layers) != 1) or (layer is not None and layer not in layers):
            return {"layers": layers}, b""
        layer = layer or layers[0]
        fields = pyogrio.read_info(path, layer=layer, encoding=encoding, **options)["fields"]
        chosen = [name for name in fields.tolist() if name.lower() in class_fields]
        chosen += [name for name in fields.tolist() if chosen and name.lower() in colour_fields]
        meta, _, geometries, columns = pyogrio.raw.read(
            path,
            layer=layer,
            encoding=encoding,
            columns=chosen or None,
            max_features=most_shapes + 1,
            force_2d=True,
            datetime_as_string=True,
            **options,
        )
    # A table without geometries has none at all.
    parts = [None] * len(columns[0]) if geometries is None and columns else geometries
    parts = [] if parts is None else list(parts)
    whole = sum(len(part) for part in parts if part is not None)
    if len(parts) > most_shapes or whole > most_coordinates:
        return {"many": True}, b""
    facts = {
        "crs": meta["crs"],
        "fields": {
            str(name): [_plain(value) for value in column.tolist()]
            for name, column in zip(meta["fields"], columns, strict=True)
        },
        "sizes": [-1 if part is None else len(part) for part in parts],
        "warnings": list(dict.fromkeys(str(each.message) for each in caught))[:3],
    }
    return facts, b"".join(part for part in parts if part is not None)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; NaN, which pyogrio writes for no number, is None."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None
    return str(value)


def _limit() -> None:
    import resource

    pages = 0
    with suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, MOST_SECONDS)]
    # If the memory in use is unknown, no limit can be computed.
    limits += [(resource.RLIMIT_AS, pages * resource.getpagesize() + MOST_BYTES)] if pages else []
    for what, limit in limits:
        with suppress(OSError, ValueError):
            hard = resource.getrlimit(what)[1]
            own = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(what, (own, hard))


def answer(request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Return what `read` returns; "error" or "undecodable" if it fails."""
    asked = {name: value for name, value in request.items() if name not in ("driver", "config")}
    try:
        return read(**asked)
    except UnicodeDecodeError:
        return {"undecodable": True}, b""
    except MemoryError:
        return {"error": f"reading it takes more than {MOST_BYTES >> 20} MB"}, b""
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        wrong = "not recognized as being in a supported file format"
        return {"error": "its content is of another kind" if wrong in text else text}, b""


def main() -> None:
    """Read what the first argument asks for (JSON), and write the answer to standard output."""
    request = json.loads(sys.argv[1])
    allow({request["driver"]}, request["config"])
    _limit()
    facts, coordinates = answer(request)
    text = json.dumps(facts).encode()
    if len(text) > MOST_TEXT:
        text, coordinates = b'{"wide": true}', b""
    sys.stdout.buffer.write(len(text).to_bytes(8, "little") + text + coordinates)
    sys.stdout.flush()
    os._exit(0)  # skip cleaning up, as memory may be damaged


if __name__ == "__main__":
    main()
