"""One file a method: its config with defaults and search space, and its loss."""
