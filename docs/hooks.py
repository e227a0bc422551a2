"""What mkdocs adds to the pages of this folder: the files of the root, the notebook, and the API.

mkdocs calls these functions by their names (https://www.mkdocs.org/user-guide/plugins/#events).
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
TOP = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "RELEASE.md": "RELEASE.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "SECURITY.md": "SECURITY.md",
}
"""File of the root -> page of the site."""
NOTEBOOK = "examples/quickstart.ipynb"
PUBLIC = (
    "data",
    "spaces",
    "models",
    "proxies",
    "search",
    "race",
    "workers",
    "supernet",
    "train",
    "export",
    "deploy",
    "references",
    "run",
    "estimator",
    "lab",
)
"""Packages whose docstrings are the API, in the order of the data flow."""
OWN_HEADING = ("    options:", "      show_root_heading: true", "      show_root_toc_entry: true")
# A page may link to other sites, but what it shows and runs comes from this one.
FETCHED = re.compile(r'<(?:script|img|link)[^>]*(?:src|href)="(?:https?:)?//')


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages of the API to the navigation."""
    assert config.nav is not None
    config.nav.append({"API": [f"api/{name}.md" for name in _api_pages()]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not lie in this folder."""
    pages = {to: _text(name).replace("](docs/", "](") for name, to in TOP.items()}
    pages["quickstart.md"] = _notebook_page()
    pages |= {f"api/{name}.md": text for name, text in _api_pages().items()}
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make links that hold in the repository hold in the site."""
    markdown = markdown.replace(f"]({NOTEBOOK})", "](quickstart.md)")
    if "/" not in page.file.src_uri:
        markdown = markdown.replace("](../", "](")
    return markdown.replace("](README.md", "](index.md").replace("](../README.md", "](../index.md")


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that would fetch something from another site."""
    if found := FETCHED.search(output):
        raise PluginError(f"{page.file.src_uri}: fetches {found.group()}; must not need a network")
    return output


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _api_pages() -> dict[str, str]:
    """Name of a page -> its text: `hytas` itself, then its public packages."""
    here = ROOT / "python" / "hytas"
    packages = [name for name in PUBLIC if (here / name).exists() or (here / f"{name}.py").exists()]
    pages = {"hytas": _root_page({f"hytas.{name}" for name in packages})}
    return pages | {name: f"# hytas.{name}\n\n::: hytas.{name}\n" for name in packages}


def _root_page(documented: set[str]) -> str:
    """What `import hytas` offers: a link where a page has it, else its documentation."""
    tree = ast.parse(_text("python/hytas/__init__.py"))
    (names,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_PUBLIC"
    ]
    lines = ["# hytas", "", ast.get_docstring(tree) or "", "", "| name | from |", "|---|---|"]
    lines += [f"| [`hytas.{name}`][{place}.{name}] | `{place}` |" for name, place in names.items()]
    for name, place in names.items():
        if place not in documented:
            lines += ["", f"::: {place}.{name}", *OWN_HEADING]
    return "\n".join(lines)


def _notebook_page() -> str:
    """Return the cells of the notebook with what they print and draw."""
    cells: list[dict[str, Any]] = json.loads(_text(NOTEBOOK))["cells"]
    return "\n\n".join(part for cell in cells for part in _cell(cell))


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    yield f"```python\n{source}\n```" if cell["cell_type"] == "code" else source
    for output in cell.get("outputs", ()):
        shown = output.get("data", {})
        if "image/png" in shown:
            yield f"![output](data:image/png;base64,{''.join(shown['image/png']).strip()})"
        elif text := "".join(output.get("text", shown.get("text/plain", ""))).rstrip():
            yield f"```text\n{text}\n```"
