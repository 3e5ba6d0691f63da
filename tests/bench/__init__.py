"""The project's benchmark: `python -m tests.bench --help`."""
