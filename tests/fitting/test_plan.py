"""How many steps the runs of a fit have."""

from __future__ import annotations

import pytest

from longshift.errors import LongshiftError
from longshift.fitting.plan import longest_steps, pace_within, usual_steps
from longshift.training.run_config import RunConfig


def test_how_long() -> None:
    config = RunConfig(target="", backbone="small_conv")
    assert usual_steps(10**6, 4, config) == 1500
    assert usual_steps(100, 4, config) == 300
    assert usual_steps(6400, 4, config) == 1000  # 40 passes of 6400 in batches of 4 x 64
    assert longest_steps(300, config) == 900
    assert longest_steps(1500, config) == 3000
    assert longest_steps(300, RunConfig(target="", backbone="mlp")) == 900
    assert longest_steps(9000, config) == 9000  # never less than the usual


def test_what_becomes_of_the_minutes() -> None:
    """120 s, three quarters of it for steps of 0.01 s in 5 runs: 1800."""
    short = pace_within(2, 5, 0.01, usual=2000, longest=6000)
    assert short.steps == 1800
    assert "fewer than the usual 2000. More time may give a better model" in short.words
    between = pace_within(2, 5, 0.01, usual=700, longest=2100)
    assert between.steps == 1800
    assert between.words == (
        "1800 steps per run, as many as fit into 2 minutes; the usual number for this data is 700."
    )
    ample = pace_within(60, 5, 0.01, usual=300, longest=900)
    assert ample.steps == 900
    # 900 steps x 5 runs x 0.01 s = 45 s, which is three quarters of a minute
    assert "instead of the usual 300" in ample.words
    assert ample.takes == "All runs together take about 1 minute; the limit is 1 hour."
    asked = pace_within(60, 5, 0.01, usual=300, longest=300, asked=True)
    assert asked.words == "300 steps per run, as requested."  # also true in the report, after the training
    assert asked.takes == "All runs together take about 20 seconds; the limit is 1 hour."
    assert "fewer than the requested 9000" in pace_within(2, 5, 0.01, 9000, 9000, asked=True).words
    with pytest.raises(
        LongshiftError,
        match=r"at least 20 steps in each of the 5 runs, got 1 minute, enough for 18 steps\. .* \(--minutes 1\.2\)",
    ):
        pace_within(1, 5, 0.5, 300, 900)
