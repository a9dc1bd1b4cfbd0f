"""The small working project that `lode init` writes."""

from lodestream.starter.write import write_project

__all__ = ["write_project"]
