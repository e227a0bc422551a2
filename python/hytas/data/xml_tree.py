"""XML files of metadata, without document types, which may name other files."""

from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from hytas.errors import InputError, library


def read_xml(path: Path) -> Element:
    """Return the root element of a file."""
    safe = library("defusedxml.ElementTree", "", "XML metadata", "defusedxml")
    try:
        root: Element = safe.parse(path, forbid_dtd=True).getroot()
    except safe.DTDForbidden:
        raise InputError(rule=f"{path.name}: XML with a document type") from None
    except ParseError as error:
        raise InputError(rule=f"{path.name} is not XML ({error})") from None
    return root
