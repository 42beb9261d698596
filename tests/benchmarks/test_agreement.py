"""The comparison of the paths of training: its differences, its combinations of styles and its file."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import torch

from benchmarks.agreement import STYLES, Outcome, main, style_options, term_difference, weight_difference


def test_differences_by_hand() -> None:
    start = torch.tensor([1.0, 1.0])
    one = Outcome([{"ce": 1.0}, {"ce": 3.0}], start, torch.tensor([4.0, 5.0]))  # moved by 5
    other = Outcome([{"ce": 1.1}, {"ce": 2.0}], start, torch.tensor([4.0, 5.5]))
    assert term_difference(one, other) == pytest.approx(1 / 4)
    assert weight_difference(one, other) == pytest.approx(0.1)
    assert term_difference(one, one) == weight_difference(one, one) == 0
    assert term_difference(one, Outcome([{"ce": 1.0}, {"kl": 3.0}], start, start)) == float("inf")


def test_styled_runs_cover_shares_views_and_partners() -> None:
    assert list(style_options("none")) == [{"style": "none"}]
    for style in STYLES[1:]:
        found = list(style_options(style))
        assert len(found) == (4 if style == "both" else 2)
        assert {one["style_share"] for one in found} == {0.5, 1.0}
        assert {one["style_views"] for one in found} == {1, 2}
        partners = {one.get("style_partner") for one in found}
        assert partners == ({None} if style == "convolution" else {"any", "class"})


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_rows_of_other_methods_and_styles_are_kept(tmp_path: Path) -> None:
    out = tmp_path / "agreement.csv"
    out.write_text("method,steps,plain,device\nerm,20,1e-7,H200\nerm,20,2e-7,cpu\ncoral,20,3e-7,cpu\n")
    arguments = ["--steps", "2", "--paths", "plain", "--out", str(out)]
    main([*arguments, "--methods", "erm", "--style", "none,statistics"])
    main([*arguments, "--methods", "erm,ndcl_plus", "--style", "statistics"])
    found = [(row["method"], row["style"], row["style_share"], row["plain"]) for row in _read(out)]
    styled = [("statistics", "0.5", "0.00e+00"), ("statistics", "1.0", "0.00e+00")]
    assert found == [
        ("erm", "none", "", "1e-7"),
        ("coral", "none", "", "3e-7"),
        ("erm", "none", "", "0.00e+00"),
        *(("erm", *rest) for rest in styled),
        *(("ndcl_plus", *rest) for rest in styled),
    ]
    last = _read(out)[-1]
    assert (last["weights_plain"], last["graphs"], last["style_views"]) == ("0.00e+00", "", "2")
    assert last["torch"] == torch.__version__.split("+")[0]
    assert last["commit"]


def test_unknown_styles_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--style", "both,oil"])
    assert "Expected some of none, amplitude, convolution, both, statistics" in capsys.readouterr().err
