"""What `longshift` says of itself."""

from __future__ import annotations

from typer.testing import CliRunner

from longshift.cli.main import VERBS, app


def test_the_help_leads_with_the_verbs_for_own_data() -> None:
    text = CliRunner().invoke(app, []).output
    intro, _, listed = text.partition("Commands")
    assert intro.index("longshift fit") < intro.index("longshift demo") < intro.index("longshift data inspect")
    assert min(VERBS, key=lambda verb: listed.index(f" {verb} ")) == "fit"


def test_british_spelling_of_an_option_works() -> None:
    result = CliRunner().invoke(app, ["fit", "--what-if-labelled"])
    assert result.exit_code == 2
    assert "Missing argument" in result.output
    assert "No such option" not in result.output
