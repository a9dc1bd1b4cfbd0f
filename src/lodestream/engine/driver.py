"""The loop: which flow runs next, on how many threads, and when the run is over."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from lodestream.engine.remedy import LOOK_SECONDS
from lodestream.engine.runner import Runner
from lodestream.errors import AlreadyRuns, AnotherWriter, JavaEnded, LodeError
from lodestream.flows.flow import Published

# How long a batch may go on after the run was asked to stop, before it is abandoned.
_GRACE = 20.0


class Driver:
    """Runs flows until stopped, or (`once`) until all are up to date.

    The deepest flow that is due goes first: what has been read travels to Gold before more is read.
    """

    def __init__(
        self,
        runners: Sequence[Runner],
        downstream: Mapping[str, Sequence[str]],
        *,
        workers: int,
        once: bool,
        stop: threading.Event,
        abandon: Callable[[], None] = lambda: None,
        lost: Callable[[], bool] = lambda: False,
        published: Callable[[str], None] = lambda _name: None,
    ) -> None:
        """`published` is told of each table that may have changed, and must not wait for anything."""
        self._runners = {runner.name: runner for runner in runners}
        self._downstream = downstream
        self._upstream = {
            name: [up for up, downs in downstream.items() if name in downs and up in self._runners]
            for name in self._runners
        }
        self._workers = max(1, min(workers, len(self._runners) or 1))
        self._once = once
        self._stop = stop
        self._abandon = abandon
        self._lost = lost
        self._published = published
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._worked = time.monotonic()

    def idle_for(self) -> float:
        """Seconds since a batch was made; 0 while one is being made."""
        if any(runner.flow.at_work for runner in self._runners.values()):
            self._worked = time.monotonic()
            return 0.0
        return time.monotonic() - self._worked

    def run(self) -> None:
        threads = [threading.Thread(target=self._work, name=f"lode-{n}", daemon=True) for n in range(self._workers)]
        for thread in threads:
            thread.start()
        threading.Thread(target=self._watch_blocked, name="lode-blocked", daemon=True).start()
        while any(thread.is_alive() for thread in threads):
            if self._stop.wait(0.2):
                break
            if self._lost():  # idle flows would learn of it with the next event only
                self._stop.set()
        with self._changed:
            self._changed.notify_all()
        self._join(threads)
        self._ended.set()

    def wake(self, names: Iterable[str]) -> None:
        """Something that these flows read was changed, by whomever, or they have something else to do."""
        with self._changed:
            for name in names:
                if name in self._runners:
                    self._runners[name].wake()
            self._changed.notify_all()

    def tell(self, name: str, what: Callable[[Runner], None]) -> None:
        """Change one flow's course (pause, resume, restart): the loop must not look at it meanwhile."""
        with self._changed:
            what(self._runners[name])
            self._changed.notify_all()

    def give_way(self, lost: Mapping[str, LodeError]) -> list[str]:
        """These tables are kept by another run from now on; answers those whose flow is not at work any more."""
        for name, error in lost.items():
            self.tell(name, lambda runner, error=error: runner.lose(error))  # type: ignore[misc]
        return [name for name in lost if self._runners[name].ended]

    def _watch_blocked(self) -> None:
        """On a thread of its own and without the lock: a file that cannot be looked at must hold up nobody else."""
        while not self._ended.wait(LOOK_SECONDS):
            for runner in self._runners.values():
                if runner.remedied():
                    self.tell(runner.name, Runner.unblock)

    def _join(self, threads: Sequence[threading.Thread]) -> None:
        deadline = time.monotonic() + _GRACE
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            self._abandon()
            for thread in threads:
                thread.join(_GRACE)

    def _work(self) -> None:
        while True:
            runner = self._next()
            if runner is None:
                return
            settled = self._upstream_done(runner)
            published = runner.turn()
            with self._changed:
                self._after(runner, published, settled)
                self._changed.notify_all()

    def _next(self) -> Runner | None:
        """The next runner that is due, marked as running; None when the run is over."""
        with self._changed:
            while not self._over():
                now = time.monotonic()
                idle = [r for r in self._runners.values() if r.state in ("waiting", "retrying", "blocked")]
                due = [r for r in idle if r.is_due(now)]
                if due:
                    chosen = max(due, key=lambda r: (r.depth, -r.due))
                    chosen.state = "running"
                    return chosen
                soonest = min((r.due for r in idle), default=math.inf)
                self._changed.wait(min(0.5, max(0.001, soonest - now)))
            self._changed.notify_all()
            return None

    def _after(self, runner: Runner, published: Published | None, settled: bool) -> None:
        runner.settle()
        if published is not None:
            self._worked = time.monotonic()
        lost = isinstance(runner.error, AnotherWriter) and not isinstance(runner.error, AlreadyRuns)
        if lost or isinstance(runner.error, JavaEnded):
            # Another driver keeps this pipeline: going on with the other tables would only lose more races. Or there is
            # no Spark any more.
            self._stop.set()
        # After a failure, too: the batch may have been published and its answer lost.
        if published is not None or runner.recovered:
            self._published(runner.name)
            for name in self._downstream.get(runner.name, ()):
                if name in self._runners:
                    self._runners[name].wake()
        finished = self._once and settled and not runner.ended and runner.state == "waiting"
        if finished and (published is None or published.caught_up):
            runner.finish("caught up")
        if runner.ended:
            for name in self._downstream.get(runner.name, ()):
                if name in self._runners:
                    self._runners[name].wake()

    def _upstream_done(self, runner: Runner) -> bool:
        return all(self._runners[name].ended for name in self._upstream[runner.name])

    def _over(self) -> bool:
        if self._stop.is_set():
            return True
        return all(runner.ended or self._stranded(runner) for runner in self._runners.values())

    def _stranded(self, runner: Runner) -> bool:
        """Waiting for inputs that will not come: everything upstream in this run has stopped."""
        upstream = self._upstream[runner.name]
        return (
            not self._once
            and runner.state == "waiting"
            and runner.due == math.inf
            and bool(upstream)
            and all(self._dry(self._runners[name]) for name in upstream)
        )

    def _dry(self, runner: Runner) -> bool:
        """Whether nothing will be published to its table. One that another driver has taken over goes on there."""
        if runner.state == "stopped":
            return not isinstance(runner.error, AlreadyRuns)
        return self._stranded(runner)
