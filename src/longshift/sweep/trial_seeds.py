"""How trials and draws become seeds: the same for everybody.

Trial t:            split_seed = t and train_seed = t (other files, other initial weights, other batches).
Draw 0:             hparam_seed = 0, the defaults.
Draw i of trial t:  hparam_seed = 1000 t + i for 1 <= i <= 999; the hyper-parameters follow from the method's name
                    and this seed alone (`longshift.training.run_config.hparam_rng`).
"""

from __future__ import annotations

PER_TRIAL = 1000


def hparam_seed(trial: int, draw: int) -> int:
    """The seed of draw `draw` of trial `trial`."""
    if not 0 <= draw < PER_TRIAL:
        raise ValueError(f"expected a draw from 0 to {PER_TRIAL - 1}, got {draw}")
    return 0 if draw == 0 else trial * PER_TRIAL + draw


def draw_of(seed: int) -> int:
    """The draw that a hyper-parameter seed stands for."""
    return seed % PER_TRIAL
