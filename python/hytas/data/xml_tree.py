"""XML files of metadata, read within bounds and without entities of their own."""

from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from hytas.errors import InputError

MOST_BYTES = 2**25
"""Of a file: the metadata of an EnMAP tile take a fiftieth."""
MOST_ELEMENTS = 500_000
MOST_DEPTH = 64


def read_xml(path: Path) -> Element:
    """Return the root element of a file."""
    if path.stat().st_size > MOST_BYTES:
        raise InputError(rule=f"{path.name}: metadata have at most {MOST_BYTES} bytes")
    builder = TreeBuilder()
    depth = count = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        if depth > MOST_DEPTH or count > MOST_ELEMENTS:
            rule = f"{path.name}: more than {MOST_ELEMENTS} elements, or {MOST_DEPTH} deep"
            raise InputError(rule=rule)
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def document_type(*_: object) -> None:
        raise InputError(rule=f"{path.name}: XML with a document type, which may name other files")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = document_type
    try:
        parser.Parse(path.read_bytes(), True)
    except expat.ExpatError as error:
        raise InputError(rule=f"{path.name} is not XML ({error})") from None
    return builder.close()
