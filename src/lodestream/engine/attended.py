"""Everything that a run does beside its flows: it hears commands, sees edits and foreign commits, renews its lease."""

from __future__ import annotations

from collections.abc import Sequence

from lodestream.engine.attendant import Attendant, Duty
from lodestream.engine.control import ControlDesk
from lodestream.engine.definitions import DefinitionWatch
from lodestream.engine.driver import Driver
from lodestream.engine.flow_control import FlowDesk
from lodestream.engine.input_watch import LOOK_SECONDS, InputWatch, Keeper
from lodestream.engine.long_batches import LongBatches
from lodestream.engine.run_lease import RunLease
from lodestream.engine.runner import Runner
from lodestream.names import feed_of
from lodestream.observe import EventLog
from lodestream.pipeline import Graph
from lodestream.planning.project import Project
from lodestream.tables.heads import heads_of
from lodestream.tables.lease import RENEW_SECONDS


class Attended:
    """Begins and ends with the block."""

    def __init__(
        self,
        project: Project,
        graph: Graph,
        run: str,
        runners: list[Runner],
        driver: Driver,
        lease: RunLease,
        events: EventLog,
        *,
        once: bool,
        definitions: DefinitionWatch | None = None,
    ) -> None:
        """`definitions` knows the files as they were loaded; without it, they are taken as they are now."""
        watch = InputWatch(heads_of(project.config), _inputs(graph), _keepers(runners))
        edits = definitions or DefinitionWatch(project)
        flows = FlowDesk(run, runners, driver)
        self._desk = ControlDesk(project.config.state_dir, run, graph.names, flows.answer)
        duties = [Duty("control", 0.2, self._desk.attend), Duty("files", 1.0, lambda: edits.look(events))]
        duties.append(Duty("long batches", 1.0, LongBatches(runners, events).look))
        if not once:
            duties.append(Duty("inputs", LOOK_SECONDS, lambda: driver.wake(watch.look())))
        # Apart from the others: a catalog may keep one waiting for as long as it likes.
        renewal = Duty("lease", RENEW_SECONDS, lambda: lease.renew(driver.give_way))
        self._attendants = (Attendant(*duties), Attendant(renewal))
        self._watch = None if once else watch

    def __enter__(self) -> None:
        if self._watch is not None:
            self._watch.look()  # before the flows do: what is committed after their first look must wake them
        self._desk.open()
        for attendant in self._attendants:
            attendant.start()

    def __exit__(self, *_: object) -> None:
        for attendant in self._attendants:
            attendant.close()
        self._desk.close()


def _inputs(graph: Graph) -> dict[str, list[str]]:
    """What each flow reads; a keyed table is read through its feed."""
    return {
        name: [one for given in graph.inputs(name) for one in (given, feed_of(given))]
        for name in graph.names
        if graph.inputs(name)
    }


def _keepers(runners: Sequence[Runner]) -> dict[str, Keeper]:
    found = {runner.name: runner for runner in runners}
    return {**found, **{feed_of(name): runner for name, runner in found.items()}}
