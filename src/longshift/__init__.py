"""longshift: classifiers for an unseen domain, trained on domains that differ in look and in class frequencies."""

__version__ = "0.1.0"
