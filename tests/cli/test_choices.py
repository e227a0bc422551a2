"""What commands and runs do without an option."""

from hytas.cli.space import space
from hytas.run.config import RunConfig
from hytas.spaces import DEFAULT_SPACE


def test_commands_and_runs_share_the_default_space() -> None:
    commands = [space.commands[name] for name in ("count", "sample")]
    defaults = [each.default for one in commands for each in one.params if each.name == "space"]
    assert defaults == [DEFAULT_SPACE] * 2
    assert RunConfig().space == DEFAULT_SPACE
