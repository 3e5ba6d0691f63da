"""Check the wording of names, docstrings, comments, messages and documents.

    python tests/lint/prose.py [PATH ...]

Prints each offence with its place and a hint, and exits with 1 if there is any. The
rules are the tables below: PROSE for text, NAMES for identifiers. A line that has to
break a rule (for example a test of a foreign message) ends in `# prose: ok`.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

CLAUSE = "a noun as the subject; no clause with what"

# A pattern for text in any file, and what to write in its place.
PROSE = {
    r"\b(?:no|some)body\b": "name the task, client or broker",
    r"\bwho(?:so)?ever\b": "name the task, client or broker",
    r"\bwhom\b": "name the task, client or broker",
    r"\bof ours\b": "our",
    r"\bspelt\b": "spelled, written",
    r"\bas it is\b": "unchanged, as is",
    r"\bsuch an?\b": "this, that, a … like it",
    r"\b(?:is|are) content\b": "accepts",
    r"\bbeliev(?:e|es|ed|ing)\b": "state the fact; brokers return, reject, time out",
    r"\b(?:lets?|letting) go\b": "release, releases",
    r"\bso[- ]manieth\b": "the nth",
    r"\bforsak\w+|\bforsook\b": "abandon, lose",
    r"\bforfeit\w*": "reject, lose",
    r"\b(?:is|was|are|were) (?:told|heard|asked for)\b": "receives, is requested",
    r"\btells? (?:whether|if|how|what|where|when|which|who)\b": "return, report, show",
    r"\btells? (?:it|them)\b": "report",
    r"\banew\b": "again, from the start",
    r"\bin vain\b": "without a result",
    r"\bworks? off\b|\bworked off\b": "process, processed",
    r"\bsees? to (?:it|that)\b": "ensure, do",
    r"\bbrought up\b|\bcomes? to pass\b": "plain words",
    r"\b[Mm]ay\b(?!\s\d)": "can, might; is allowed to",
    r"\balso (?:if|in|of|when|after|for|by)\b": "even if; and in; including",
    r"\bso (?:many|much)\b": "that many, up to N, the number of",
    r"\bas (?:many|much) as\b": "up to N, the number of",
    r"\bfrom (?!now\b)(?:[\w'`-]+ ){1,5}on(?=[.,;:)]|$)": "from, after, since",
    r"\b(?:those|that) (?:that|of|which)\b": "repeat the noun",
    r"\b(?:is|are|was|were|be|been) waited for\b": "the active verb: waits for",
    r"\bgiven up\b": "the active verb: gives up, abandons",
    r"\bbut for\b": "except",
    r"\b(?:is|are|was|were) to be\b": "the verb itself; must be, will be",
    r"\bat once\b": "immediately; in one call; together",
    r"\banswer(?:s|ed|ing)?\b": "response, responds, returns",
    r"\bask(?:s|ed|ing)?\b": "request, send, read, check",
    r"\b(?:ours|theirs|said)\b": "name the thing; the noun or the value",
    # A clause as a subject, or as a description; questions are fine, "what to do" too.
    r"(?-i:(?:^(?:[-*|] *|#: )?|[.;:!)|] |\"\"\"|\*\*)What)\b(?![^.]*\?)": CLAUSE,
    r"(?<!Settings)[;:] what\b(?! to\b)": CLAUSE,
    r"\b(?:and|but|so|since|because|while|until|if|that|than) what"
    r" (?:is|are|was|were|has|have|follows|belongs)\b": CLAUSE,
    r"\bthe ones? (?:that|which|who|in|of|with)\b": "repeat the noun",
    r"(?-i:\bNote (?:that|how))\b": "state the fact; record, count, remember",
}

# The start of a docstring, and what to write in its place.
DOCSTRING_STARTS = {
    r"Gives?\b": "Return",
    r"Tells?\b": "Return, Report",
    r"Says?\b": "Return, Report, Describe",
    r"Hears?\b": "Receive, Handle",
    r"Sees? that\b": "Ensure, Check",
    r"Has it\b|Have (?:it|the|a)\b": "the verb itself",
    r"What\b|Who\b|Whom\b|Whether\b|Of\b": "start with a noun or a verb",
    r"Name apart\b": "Separate",
    r"Notes?\b": "Record, Count, Remember, Begin, End",
}

# The same for comments, where a clause is no sentence.
COMMENT_STARTS = {
    r"Of (?:a|an|the|these|those|all|its)\b": "a sentence with its subject first",
    r"(?:What|Who) [^?]*$": "a sentence with its subject first",
}

# A part of an identifier between underscores, or at a change of case.
NAMES = {
    "told": "reported, received, on_…",
    "tell": "report, send",
    "tells": "reports",
    "heard": "received",
    "hear": "receive, on_…",
    "hears": "receives",
    "hearer": "listener",
    "nobody": "ignore",
    "somebody": "the role",
    "whom": "the role",
    "spelt": "spelled",
    "forsake": "abandon",
    "forsaken": "abandoned",
    "forfeited": "rejected",
    "heir": "next_leader",
    "bury": "close",
    "hasten": "…_soon, flush",
    "errand": "fan_out",
    "errands": "fan_out",
    "asker": "reader",
    "rung": "set",
    "bell": "event",
    "gathering": "linger",
    "standing": "status",
    "refusal": "error",
    "refusals": "errors",
    "troubled": "failed",
    "trouble": "error",
    "troubles": "errors",
    "happenings": "events",
    "manieth": "nth",
    "answer": "response",
    "answers": "responses",
    "answered": "responded",
    "answering": "responding",
    "ask": "request, send, read",
    "asks": "requests, sends",
    "asked": "requested, requests",
    "asking": "requesting",
    "ours": "embedded, client, or the noun",
    "theirs": "kafka, peer, or the noun",
    "said": "returned, printed, expected",
}

IGNORE = "# prose: ok"
SUFFIXES = (".py", ".md", ".toml", ".ini")


class Prose:
    """The offences of one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text = path.read_text()
        self._lines = self._text.splitlines()
        self.found: list[str] = []

    def check(self) -> list[str]:
        if self._path.suffix == ".py":
            self._check_python()
        else:
            for number, line in enumerate(self._lines, 1):
                self._check_text(number, line)
        return self.found

    def _check_python(self) -> None:
        for token in tokenize.generate_tokens(io.StringIO(self._text).readline):
            first = token.start[0]
            if token.type == tokenize.COMMENT:
                self._check_text(first, token.string)
                self._check_comment(first, token.string.lstrip("# "))
            elif token.type == tokenize.STRING:
                for number, line in enumerate(token.string.splitlines(), first):
                    self._check_text(number, line)
            elif token.type == tokenize.NAME:
                self._check_name(first, token.string)
        for node in ast.walk(ast.parse(self._text)):
            if isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ):
                self._check_docstring(node)

    def _check_text(self, number: int, text: str) -> None:
        for pattern, hint in PROSE.items():
            if match := re.search(pattern, text, re.IGNORECASE):
                self._note(number, match[0], hint)

    def _check_comment(self, number: int, text: str) -> None:
        # The line before may be the beginning of the sentence.
        before = self._lines[number - 2].lstrip() if number > 1 else ""
        if before.startswith("#") and not before.endswith((".", ":", ")")):
            return
        for pattern, hint in COMMENT_STARTS.items():
            if match := re.match(pattern, text):
                self._note(number, match[0], hint)

    def _check_docstring(
        self, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    ) -> None:
        text = ast.get_docstring(node)
        if text is None:
            return
        for pattern, hint in DOCSTRING_STARTS.items():
            if match := re.match(pattern, text):
                self._note(node.body[0].lineno, match[0], hint)

    def _check_name(self, number: int, name: str) -> None:
        spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
        for part in spaced.lower().split("_"):
            if part in NAMES:
                self._note(number, name, NAMES[part])

    def _note(self, number: int, words: str, hint: str) -> None:
        if not self._lines[number - 1].rstrip().endswith(IGNORE):
            self.found.append(f"{self._path}:{number}: {words!r}: {hint}")


def files(paths: list[str]) -> Iterator[Path]:
    """Return the tracked text files below the paths; this file has the words itself."""
    listed = subprocess.run(
        ["git", "ls-files", "--", *paths], capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        path = Path(name)
        if path.suffix in SUFFIXES and path.resolve() != Path(__file__).resolve():
            yield path


def main(paths: list[str]) -> int:
    found = [offence for path in files(paths) for offence in Prose(path).check()]
    sys.stdout.writelines(f"{offence}\n" for offence in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
