"""The drawing of the error classes matches the classes."""

import re

from sharecons.errors import Error
from sharecons.spark import errors


def test_drawing_matches_the_error_classes():
    drawn = re.findall(r"^    ([│ └├─]*)(\w+Error)\b", errors.__doc__, re.MULTILINE)
    above = {0: Error}
    for branches, name in drawn:
        depth = len(branches) // 4
        found = getattr(errors, name)
        assert (above[depth - 1],) == found.__bases__
        above[depth] = found

    assert sorted(errors.__all__) == sorted(name for _, name in drawn)
