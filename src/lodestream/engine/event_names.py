"""Which table is meant by a name that was given to `lode events`."""

from __future__ import annotations

from difflib import SequenceMatcher

from lodestream.config import Config
from lodestream.errors import ConfigError, LodeError
from lodestream.observe import read_events
from lodestream.planning.project import open_project


def table_of_events(config: Config, asked: str) -> str:
    """The table's full name. One that is no longer declared is known by its events."""
    logged = {event.table for event in read_events(config.state_dir) if event.table}
    if asked in logged:
        return asked
    known = {*logged, *_declared(config)}
    for name in sorted(known):
        if asked.lower() in (name.lower(), name.lower().partition(".")[2]):
            return name
    nearest = sorted(known, key=lambda name: (-_likeness(asked, name), name))
    raise ConfigError(
        f'there is no table "{asked}"',
        why=f"the tables, the nearest name first: {', '.join(nearest) or 'none'}",
        fix=f"did you mean {nearest[0]}?" if nearest else "`lode plan` shows the tables of the pipeline",
    )


def _declared(config: Config) -> tuple[str, ...]:
    try:
        return open_project(config, tolerant=True).graph.names
    except LodeError:
        return ()  # what happened can be read of a pipeline that no longer loads


def _likeness(asked: str, name: str) -> float:
    short = name.partition(".")[2]
    return max(SequenceMatcher(None, asked.lower(), one.lower()).ratio() for one in (name, short))
