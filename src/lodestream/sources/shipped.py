"""Errors of ours that were raised on an executor.

Spark brings only the text of a worker's traceback to the driver, so the facts travel inside the message.
"""

from __future__ import annotations

import json
import re

from lodestream import errors
from lodestream.errors import LodeError

_MARK = "lode-error:"
_PACKED = re.compile(re.escape(_MARK) + r"(\{.*\})")


class Shipped(Exception):
    """Raised on an executor in place of the error it carries: `raise Shipped(error)`."""

    def __init__(self, error: LodeError) -> None:
        facts = {"type": type(error).__name__, "what": error.what, "why": error.why, "fix": error.fix}
        super().__init__(_MARK + json.dumps(facts))


def unpack(error: BaseException) -> LodeError | None:
    """The error of ours inside what Spark raised, or None when it is something else."""
    found = _PACKED.search(str(error))
    if found is None:
        return None
    try:
        facts = json.loads(found[1])
        kind = getattr(errors, facts["type"])
    except (ValueError, KeyError, AttributeError):
        return None
    made: LodeError = kind(facts["what"], why=facts["why"], fix=facts["fix"])
    return made
