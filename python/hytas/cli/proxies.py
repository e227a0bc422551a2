"""`hytas proxies`: list and describe the proxies."""

import inspect
import json
from typing import Any

import click

from hytas.cli import options


@click.command()
@click.argument("name", required=False)
@options.plugin_option(expose_value=False)
@options.json_option
def proxies(name: str | None, as_json: bool) -> None:
    """List the proxies, or describe those that NAME gives, separated by commas.

    \b
    hytas proxies
    hytas proxies dss
    """
    from hytas.proxies import COMBINATIONS, PROXIES, base_proxies, parse_proxies
    from hytas.proxies.table import SYNONYMS, summary

    if name in COMBINATIONS:
        function = COMBINATIONS[name]
        text = inspect.cleandoc(function.__doc__ or "")
        described = {name: {"summary": summary(function), "text": text}}
        click.echo(json.dumps(described, indent=1) if as_json else f"{name}\n\n{text}")
        return
    if name is not None:
        chosen = list(dict.fromkeys(spec.name for spec in base_proxies(parse_proxies(name))))
    else:
        chosen = list(PROXIES)
    if as_json:
        click.echo(json.dumps({each: _described(each) for each in chosen}, indent=1))
        return
    if name is not None:
        click.echo("\n\n".join(_page(each) for each in chosen))
        return
    width = max(map(len, [*PROXIES, *COMBINATIONS, *SYNONYMS]))
    for each in chosen:
        proxy = PROXIES[each]
        needs = "supernet" if proxy.needs_supernet else "data" if proxy.needs_data else "-"
        click.echo(f"{each:<{width}}  {needs:<8}  {proxy.summary}")
    for each, function in COMBINATIONS.items():
        click.echo(f"{each:<{width}}  {'-':<8}  {summary(function)}")
    for each, combination in SYNONYMS.items():
        click.echo(f"{each:<{width}}  {'data':<8}  Short for {combination} (TE-NAS).")
    click.echo(
        "\ndata: the proxy needs labelled patches; supernet: and the weights of one. "
        "`hytas proxies NAME` shows formula, source, options."
    )


def _described(name: str) -> dict[str, Any]:
    from hytas.proxies import PROXIES

    proxy = PROXIES[name]
    return {
        "summary": proxy.summary,
        "needs_data": proxy.needs_data,
        "pass": proxy.pass_name,
        "options": {key: list(values) for key, values in proxy.options.items()},
        "text": inspect.cleandoc(proxy.function.__doc__ or ""),
    }


def _page(name: str) -> str:
    from hytas.proxies import PROXIES

    proxy = PROXIES[name]
    lines = [name, "", inspect.cleandoc(proxy.function.__doc__ or "")]
    if proxy.options:
        lines += ["", "options (the first value is the default):"]
        lines += [f"  {key}={'|'.join(values)}" for key, values in proxy.options.items()]
        first = next(iter(proxy.options.items()))
        lines += ["", f"written as {name}:{first[0]}={first[1][-1]}"]
    return "\n".join(lines)
