"""The published packages: their contents, and whether they work alone.

- `test_distributions`: the files and the metadata of the sdist and of the plain wheel.
- `smoke`: installs wheels in empty environments; `smoke_program` is what runs there.
- `audit`: compares the dependencies with known vulnerabilities.
"""
