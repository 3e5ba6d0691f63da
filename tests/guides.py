"""The Python programs in the pages of docs/."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

__all__ = ["Guide"]

DOCS = Path(__file__).parents[1] / "docs"


class Guide:
    """One page and its programs, or the pages of one guide, in this order."""

    def __init__(self, *pages: str) -> None:
        self.page = " and ".join(pages)
        self.text = "\n".join((DOCS / page).read_text() for page in pages)
        self.blocks = re.findall(r"```python\n(.*?)```", self.text, re.DOTALL)

    def compile(self) -> int:
        """Compile all programs; return how many there are."""
        for number, block in enumerate(self.blocks):
            compile(block, f"docs/{self.page}, block {number}", "exec")
        return len(self.blocks)

    def program(self, name: str, **names: Any) -> Any:
        """Return the object of this name of the one program that has it.

        Args:
            names: the names that the program uses and does not define or import.
        """
        defines = re.compile(
            rf"^(async def|def|class) {name}\b|^{name} =", re.MULTILINE
        )
        (block,) = [block for block in self.blocks if defines.search(block)]
        exec(block, names)
        return names[name]

    async def run(self, number: int, names: dict[str, Any]) -> None:
        """Run a program that awaits at its top level, as `python -m asyncio` does.

        Args:
            number: of the program in the page, from 0.
            names: the names that it uses; it adds those it defines. `servers` replaces
                its addresses.
        """
        block = re.sub(r"\b(localhost|k):9092", names["servers"], self.blocks[number])
        code = compile(
            block,
            f"docs/{self.page}, block {number}",
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        )
        result = eval(code, names)
        if inspect.iscoroutine(result):
            await result
