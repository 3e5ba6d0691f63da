"""The documentation site: its layout, its generated pages, and their tests.

    python -m tests.site DIR     # builds the site in DIR/html

- `layout`: where files of the repository are on the site; rewrites links to them.
- `navigation`: the sections of docs/zensical.toml.
- `reference`: the stubs of the API pages, read from the source.
- `llms`: llms.txt, from the navigation.
- `build`: lays out all pages and runs Zensical.
"""
