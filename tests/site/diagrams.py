"""Diagrams of the pages as pictures, since the site loads no script of another host.

GitHub draws the Mermaid blocks of the pages. The site has a picture of each in
docs/diagrams/mermaid, named by a hash of the block. To draw the missing ones, with
Chromium and the file dist/mermaid.min.js of the npm package mermaid:

    python -m tests.site.diagrams mermaid.min.js
"""

import hashlib
import json
import re
import shutil
import sys
from pathlib import Path

from tests.site.layout import ROOT

__all__ = ["BLOCK", "blocks", "picture", "with_pictures"]

BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DOCS = ROOT / "docs"


def picture(block: str) -> str:
    """Return the path of a block's picture, from docs/."""
    return f"diagrams/mermaid/{hashlib.sha256(block.encode()).hexdigest()[:8]}.svg"


def with_pictures(text: str) -> str:
    """Return the Markdown of a page of docs/ with pictures for its blocks."""
    return BLOCK.sub(lambda match: f"![diagram]({picture(match[1])})", text)


def blocks() -> list[str]:
    """Return the Mermaid blocks of all pages."""
    return [
        each for page in DOCS.glob("*.md") for each in BLOCK.findall(page.read_text())
    ]


def draw(script: Path) -> None:
    """Draw the missing pictures, and remove pictures without a block."""
    from playwright.sync_api import sync_playwright

    files = {DOCS / picture(block): block for block in blocks()}
    for path in {*DOCS.glob("diagrams/mermaid/*.svg")} - files.keys():
        path.unlink()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.add_script_tag(content=script.read_text())
        options = {"theme": "neutral", "htmlLabels": False, "deterministicIds": True}
        options["flowchart"] = {"htmlLabels": False}
        for path, block in files.items():
            program = f"""
                mermaid.initialize({json.dumps(options)});
                mermaid.render("drawn", {json.dumps(block)}).then(made => made.svg)
            """
            path.write_text(page.evaluate(program) + "\n")


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
