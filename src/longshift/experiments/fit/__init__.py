"""A model from one's own data: look, hold out each site in turn, train on all, and say what to expect."""

from longshift.experiments.fit.run import FitResult, fit

__all__ = ["FitResult", "fit"]
