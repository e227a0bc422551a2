"""A group that is called without a command prints its help on lines of its own."""

import pytest

from hytas.cli.main import run


@pytest.mark.parametrize("group", [[], ["space"], ["supernet"], ["benchmark"], ["analyse"]])
def test_help_of_a_group_has_lines(group: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(group)
    out, err = capsys.readouterr()
    assert len((out + err).splitlines()) > 5
    assert "\\n" not in out + err
