"""The recipes themselves, one file for those that share their way of working."""
