"""The real publish code on a catalog in memory, with two writers, maintenance, an operator and a bad network.

Input positions are numbers; every third one is a dead letter. What the tables must hold is therefore known exactly,
and is checked each time `main` moves.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from protocol_schedule import Schedule

from lodestream.errors import AnotherWriter, CatalogUnavailable, OutcomeUnknown, Transient
from lodestream.flows.assemblies.pulled import PulledIntake
from lodestream.flows.batch import Batch, Published, Span
from lodestream.flows.context import Context
from lodestream.flows.flow import Flow
from lodestream.flows.intake import SourceIntake
from lodestream.flows.letters.table import DeadLetters
from lodestream.flows.parts import Home, Intake, Making, Parts, Taking
from lodestream.pipeline.location import Location
from lodestream.pipeline.table import Table
from lodestream.sources.source import Position, Source
from lodestream.tables.memory import MemoryStore, MemoryTable
from lodestream.tables.notes import ATTEMPT, SETTLED
from lodestream.tables.snapshot import Snapshot, Stamp
from lodestream.tables.store import MAIN, Refused

NAME = "silver.events"
_NO_LAKE = SimpleNamespace(
    spark=SimpleNamespace(conf=SimpleNamespace(get=lambda key: "", set=lambda key, value: None)), catalog="memory"
)


TROUBLES = ("down", "lost", "late", "kill")
# What a catalog may say that is not so: success without a commit, a commit reported as a failure, and yes to a request
# that it then carries out a second time.
LIES = ("yes", "no", "twice")
_COMMITS = tuple(f"{step}.{part}" for step in ("fast_forward", "append", "point") for part in ("swap", "answer"))


class Killed(BaseException):
    """SIGKILL: nothing after this line runs."""


class Broken(AssertionError):
    """The one rule does not hold."""


def is_dead(position: int) -> bool:
    return position % 3 == 0


@dataclass
class Weather:
    """What may go wrong in a schedule, and how often."""

    faults: int = 0
    chance: float = 0.0
    kinds: tuple[str, ...] = (*TROUBLES, *LIES)
    where: tuple[str, ...] = ()  # everywhere
    maintenance: int = 0
    rollbacks: int = 0
    writers: int = 2
    streams: bool = False  # positions come out of a pull, as Structured Streaming gives them

    @classmethod
    def seeded(cls, rng: random.Random) -> Weather:
        lying = rng.random() < 0.3
        return cls(
            kinds=LIES if lying else (*TROUBLES, *LIES),
            where=_COMMITS if lying else (),
            faults=rng.choice((0, 2, 6)),
            chance=rng.choice((0.02, 0.1, 0.3)),
            maintenance=rng.choice((0, 2, 5)),
            rollbacks=rng.choice((0, 0, 1, 2)),
            streams=rng.random() < 0.25,
        )


class World:
    """One schedule, from its seed to the verdict."""

    def __init__(self, seed: int, weather: Weather | None = None) -> None:
        self.rng = random.Random(seed)
        self.weather = weather or Weather.seeded(self.rng)
        self.schedule = Schedule(self.rng)
        self.main = CheckedTable(NAME, self._main_moved)
        self.dead: CheckedTable | None = None
        self.produced = 0
        self.goal = self.rng.randint(4, 14)
        self.in_flight: list[Callable[[], None]] = []
        self.lives = 0
        self.survivors: list[Flow] = []
        self.losers: list[str] = []
        self.undone: set[int] = set()
        self.calm = False

    def run(self) -> World:
        actors: dict[str, Callable[[], None]] = {"producer": self._produce}
        for number in range(self.weather.writers):
            actors[f"writer{number}"] = self._write
        if self.weather.maintenance:
            actors["maintenance"] = self._maintain
        if self.weather.rollbacks:
            actors["operator"] = self._roll_back
        self.schedule.run(actors)
        self._bring_to_an_end()
        return self

    # What may happen at any step

    def gate(self, step: str) -> None:
        self.schedule.pause()
        if self.in_flight and self.rng.random() < 0.2:
            self.in_flight.pop(0)()  # what the network has held back
        weather = self.weather
        if self.calm or weather.faults == 0 or self.rng.random() > weather.chance:
            return
        if weather.where and step not in weather.where:
            return
        weather.faults -= 1
        kind = self.rng.choice(weather.kinds)
        if kind == "kill":
            raise Killed(step)
        if kind == "yes" and step.endswith(".swap"):
            raise Pretended
        if kind == "no" and step == "fast_forward.answer":
            raise Refused("the catalog says that it did not commit")
        if kind == "twice" and step.endswith(".answer"):
            raise Twice
        if step.endswith(".answer"):
            raise OutcomeUnknown(f"the answer to {step} was lost")
        if kind == "lost" and step == "fast_forward.swap":
            raise OutcomeUnknown("the request was lost, and we cannot know")
        if kind == "late" and step in ("fast_forward.swap", "append.swap"):
            raise Late
        raise CatalogUnavailable(step)

    # Actors

    def _produce(self) -> None:
        while self.produced < self.goal:
            self.produced += self.rng.randint(1, 3)
            self.schedule.pause()

    def _write(self) -> None:
        for _ in range(self.rng.choice((0, 0, 20))):
            self.schedule.pause()
        while True:
            self.lives += 1
            flow = self._flow(f"run{self.lives}")
            try:
                if self._drive(flow):
                    self.survivors.append(flow)
                return
            except Killed:
                continue

    def _flow(self, run: str) -> Flow:
        return model_stream_flow(self, run) if self.weather.streams else model_flow(self, run)

    def _drive(self, flow: Flow) -> bool:
        while True:
            try:
                published = flow.step(self.rng.randint(1, 4))
            except AnotherWriter:
                self.losers.append(flow.run)
                return False
            except Transient:
                self.schedule.pause()
                continue
            self._check_word(published)
            if published is None and self.produced >= self.goal:
                return True
            self.schedule.pause()

    def _maintain(self) -> None:
        for _ in range(self.weather.maintenance):
            for _ in range(self.rng.randint(1, 15)):
                self.schedule.pause()
            table = self.rng.choice([self.main, self.dead or self.main])
            if self.rng.random() < 0.5:
                MemoryStore(table, lambda step: self.schedule.pause()).append(MAIN, {}, operation="replace")
            else:
                table.expire(self._expirable(table))

    def _expirable(self, table: CheckedTable) -> list[int]:
        """What careful maintenance may forget: not the way to the last positions, nor letters yet to be settled."""
        stamps = (self.main.ever[number].stamp for number in self.main.chain(self.main.refs[MAIN]))
        last = next((stamp for stamp in stamps if stamp is not None), None)
        found = _expirable(table, self.rng)
        return found if table is self.main else [n for n in found if last and n <= int(last.notes.get(SETTLED, 0))]

    def _roll_back(self) -> None:
        for _ in range(self.weather.rollbacks):
            for _ in range(self.rng.randint(5, 60)):
                self.schedule.pause()
            chain = list(self.main.chain(self.main.refs[MAIN]))
            targets = [number for number in chain if _resumable(self.main, number)]
            if not targets:
                return
            target = self.rng.choice(targets)
            self.undone |= set(chain[: chain.index(target)])
            self.main.set(MAIN, target)
            # A REST catalog compares snapshots, not moves; but no request outlives the time a person takes.
            self.in_flight = []

    def _bring_to_an_end(self) -> None:
        """Faults are over: every run that lives gets more input. One goes on, the others learn that they lost."""
        self.calm = True
        while self.in_flight:
            self.in_flight.pop(0)()
        self.produced += 4
        self.rng.shuffle(self.survivors)
        for flow in self.survivors:
            self.schedule.run({"survivor": lambda flow=flow: self._finish(flow)})
        if not self.survivors:
            raise Broken(f"nobody goes on: {self.losers} all lost")
        self.schedule.run({"last": lambda: self._finish(self._flow("last"))})
        if self._reached() != self.produced:
            raise Broken(f"stuck at {self._reached()} of {self.produced}")
        self._check_letters(exactly=True)

    def _finish(self, flow: Flow) -> None:
        try:
            while flow.step(3) is not None:
                pass
            self.produced += 3  # so that the next one has something to do
            while flow.step(3) is not None:
                pass
        except AnotherWriter:
            self.losers.append(flow.run)

    # Checks

    def _main_moved(self, _before: int | None, after: int) -> None:
        chain = [self.main.ever[number] for number in self.main.chain(after)][::-1]
        back = self.undone & {one.id for one in chain}
        if back:
            raise Broken(f"a rollback was undone: {back}")
        stamped = [one for one in chain if one.stamp is not None]
        self._check_stamps(stamped)
        _check_blocks([one.stamp.run for one in stamped if one.stamp])
        reached = _end(stamped[-1].stamp) if stamped else 0
        expected = [number for number in range(reached) if not is_dead(number)]
        if sorted(self.main.rows(after)) != expected:
            raise Broken(f"rows {sorted(self.main.rows(after))} are not {expected}")
        if not self.calm:
            self._check_letters(exactly=False)

    def _check_word(self, published: Published | None) -> None:
        """A flow that says "published" is believed: readers are woken, and it may sleep until something new comes."""
        if published is None or published.snapshot in self.undone:
            return
        if published.snapshot not in self.main.chain(self.main.refs[MAIN]):
            raise Broken(f"snapshot {published.snapshot} was called published, and main does not reach it")

    def _check_stamps(self, stamped: list[Snapshot]) -> None:
        at = 0
        for one in stamped:
            stamp = one.stamp
            assert stamp is not None
            start = (stamp.started_from or {}).get("input", {"next": 0})["next"]
            if start != at:
                raise Broken(f"snapshot {one.id} is from {start}, its predecessor reached {at}")
            at = _end(stamp)
            held = [number for number in range(start, at) if not is_dead(number)]
            if sorted(self.main.added(one.id)) != held:
                raise Broken(f"snapshot {one.id} says {start} to {at} and holds {self.main.added(one.id)}")

    def _check_letters(self, *, exactly: bool) -> None:
        wanted = [number for number in range(self._reached()) if is_dead(number)]
        found = sorted(number for number, *_ in self.dead.rows(self.dead.refs[MAIN])) if self.dead else []
        if exactly and found != wanted:
            raise Broken(f"dead letters {found} are not {wanted}")
        if not set(wanted) <= set(found):
            raise Broken(f"dead letters {sorted(set(wanted) - set(found))} are lost")

    def _reached(self) -> int:
        stamps = [self.main.ever[number].stamp for number in self.main.chain(self.main.refs[MAIN])]
        return next((_end(stamp) for stamp in stamps if stamp is not None), 0)


class CheckedTable(MemoryTable):
    """Remembers every snapshot, and tells when `main` moves."""

    def __init__(self, name: str, moved: Callable[[int | None, int], None] = lambda before, after: None) -> None:
        self.ever: dict[int, Snapshot] = {}
        self._moved = lambda before, after: None
        super().__init__(name)
        self._moved = moved

    def add(self, *args: Any, **kwargs: Any) -> int:
        number = super().add(*args, **kwargs)
        self.ever[number] = self.snapshots[number]
        return number

    def set(self, ref: str, snapshot_id: int) -> None:
        before = self.refs.get(ref)
        super().set(ref, snapshot_id)
        if ref == MAIN:
            self._moved(before, snapshot_id)


class Late(Exception):
    """The request is on its way, its answer will not come."""


class Pretended(Exception):
    """The answer is yes, and nothing was done."""


class Twice(Exception):
    """The answer is yes, and what was done will be done again."""


class ModelStore(MemoryStore):
    """A catalog whose network may hold a request back and deliver it after its sender has given up."""

    def __init__(self, world: World, table: CheckedTable) -> None:
        super().__init__(table, world.gate)
        self._world = world

    def fast_forward(self, branch: str, upto: int, place: str) -> None:
        try:
            super().fast_forward(branch, upto, place)
        except Late:
            self._hold_back(upto)
            raise OutcomeUnknown("no answer") from None
        except Pretended:
            self._refs[MAIN] = upto  # so it said, and until it is asked again that is what a client knows
        except Twice:
            if self.table.refs[MAIN] == upto:  # or a person has rolled back meanwhile: see `_roll_back`
                self._hold_back(upto)

    def point(self, branch: str, snapshot_id: int) -> None:
        with suppress(Pretended, Twice):
            super().point(branch, snapshot_id)

    def drop(self, branch: str) -> None:
        with suppress(Pretended, Twice):
            super().drop(branch)

    def _hold_back(self, upto: int) -> None:
        table, expected = self.table, self._refs[MAIN]
        self._world.in_flight.append(lambda: _land(table, expected, upto))


class ModelSource(Source):
    name = "input"

    def __init__(self, world: World) -> None:
        self._world = world

    def latest(self) -> Position:
        return {"next": self._world.produced}

    def start(self, latest: Position) -> Position:
        return {"next": 0}

    def check(self, since: Position, latest: Position) -> None:
        if since["next"] > latest["next"]:
            raise Broken("the table is ahead of its input")

    def cap(self, since: Position, latest: Position, rows: int) -> Position:
        return {"next": min(latest["next"], since["next"] + rows)}

    def pending(self, since: Position, to: Position) -> int:
        return int(to["next"] - since["next"])

    def read(self, since: Position, to: Position) -> Any:
        return range(since["next"], to["next"])

    def accept(self, since: Position, latest: Position) -> Position:
        return latest


def model_flow(world: World, run: str) -> Flow:
    """The real flow and dead letters; only what Spark would do is done in memory."""
    return _assembled(world, run, SourceIntake([ModelSource(world)]))


def model_stream_flow(world: World, run: str) -> Flow:
    intake = PulledIntake(ModelStream(world))  # type: ignore[arg-type]
    return _assembled(world, run, intake, intake)


def _assembled(world: World, run: str, intake: Intake, taking: Taking | None = None) -> Flow:
    table = Table(name=NAME, tier="silver", kind="function", location=Location("pipeline.py", 1))
    context = Context.of(_NO_LAKE, table, run)  # type: ignore[arg-type]
    home = ModelHome(world)
    return Flow(context, Parts(intake, home, ModelMaking(world, home, ModelLetters(world, run)), taking=taking))


class ModelHome(Home):
    def __init__(self, world: World) -> None:
        self._world = world
        self.store: Any = None

    def open(self, *, guest: bool = False) -> Any:
        self.store = ModelStore(self._world, self._world.main)
        return self.store


class ModelMaking(Making):
    def __init__(self, world: World, home: ModelHome, dead: ModelLetters) -> None:
        self._world, self._home, self._dead = world, home, dead

    def make(self, span: Span) -> Batch:
        self._dead.settle(self._home.store)
        read = ModelSource(self._world).read
        numbers: Any = span.given if span.given is not None else read(span.since["input"], span.to["input"])
        return ModelBatch(self._world, self._home, self._dead, numbers)


class ModelStream:
    """Plans the offsets of a batch itself, some time after it was told where to begin."""

    name = "input"

    def __init__(self, world: World) -> None:
        self._world = world

    def pull(self, since: Position | None, publish: Any, rows: int, *, stopping: Any) -> bool:
        self._world.gate("pull")
        start = since["next"] if since else 0
        end = min(self._world.produced, start + rows)
        if end > start:
            publish(range(start, end), {"next": end})
        return end > start


@dataclass
class ModelBatch(Batch):
    world: World
    home: ModelHome
    dead: ModelLetters
    span: range
    counts: Mapping[str, int] = field(default_factory=dict)

    def write(self, branch: str, properties: Mapping[str, str]) -> None:
        rows = [number for number in self.span if not is_dead(number)]
        _write(self.world, self.world.main, branch, properties, rows)

    def companions(self, stamp: Stamp, main_version: str) -> None:
        letters = [number for number in self.span if is_dead(number)]
        if letters:
            self.dead.publish(letters, stamp, main_version, None)  # type: ignore[arg-type]

    def notes(self) -> Mapping[str, str]:
        return self.dead.attestation()

    def tidy(self, *, lost: bool) -> None:
        self.dead.tidy(self.home.store, lost=lost)


class ModelLetters(DeadLetters):
    def __init__(self, world: World, run: str) -> None:
        super().__init__(_NO_LAKE, NAME, run)  # type: ignore[arg-type]
        self._world = world

    def exists(self) -> bool:
        return self._world.dead is not None

    def create(self) -> Any:
        self._world.dead = self._world.dead or CheckedTable(NAME + "__dead")
        return ModelStore(self._world, self._world.dead)

    def append(self, letters: Any, stamp: Stamp, contract: object, branch: str, properties: Mapping[str, str]) -> None:
        assert self._world.dead is not None
        rows = [(number, stamp.notes[ATTEMPT], stamp.batch) for number in letters]
        _write(self._world, self._world.dead, branch, properties, rows)

    def attempts_after(self, batch: int, snapshot: int) -> set[str]:
        assert self._world.dead is not None
        return {row[1] for row in self._world.dead.rows(snapshot) if row[2] > batch}

    def holds(self, attempts: Iterable[str]) -> bool:
        assert self._world.dead is not None
        return any(row[1] in attempts for row in self._world.dead.rows(self._world.dead.refs[MAIN]))

    def remove(self, attempts: Iterable[str]) -> None:
        table = self._world.dead
        assert table is not None
        gone = [row for row in table.rows(table.refs[MAIN]) if row[1] in attempts]
        _write(self._world, table, MAIN, {}, (), operation="delete", removed=gone)


def _write(world: World, table: CheckedTable, branch: str, *args: Any, **kwargs: Any) -> None:
    """Spark loads the table for itself, and refuses a branch that is not there at that moment."""
    client = MemoryStore(table, world.gate)
    if client.ref(branch) is None:
        raise ValueError(f"Cannot use branch (does not exist): {branch}")
    try:
        client.append(branch, *args, **kwargs)
    except Pretended:
        return
    except Twice:
        MemoryStore(table).append(branch, *args, **kwargs)
    except Late:
        # The job was given up and commits after all, on the branch as it is then.
        late = MemoryStore(table)
        world.in_flight.append(lambda: late.ref(branch) and late.append(branch, *args, **kwargs))
        raise CatalogUnavailable("the job did not answer") from None


def _land(table: MemoryTable, expected: int, target: int) -> None:
    if table.refs[MAIN] == expected and target in table.snapshots:
        table.set(MAIN, target)


def _end(stamp: Stamp | None) -> int:
    return int(stamp.positions["input"]["next"]) if stamp else 0


def _check_blocks(runs: list[str]) -> None:
    """A run that was overtaken never publishes again."""
    blocks = [run for number, run in enumerate(runs) if number == 0 or runs[number - 1] != run]
    if len(blocks) != len(set(blocks)):
        raise Broken(f"runs take turns: {blocks}")


def _resumable(table: MemoryTable, number: int) -> bool:
    """Whether the kept history below a snapshot still says where the table is."""
    while number in table.snapshots:
        snapshot = table.snapshots[number]
        if snapshot.stamp is not None or snapshot.parent is None:
            return True
        number = snapshot.parent
    return False


def _expirable(table: MemoryTable, rng: random.Random) -> list[int]:
    """Any snapshots but those from a reference down to its last positions."""
    kept: set[int] = set()
    for at in table.refs.values():
        for number in table.chain(at):
            kept.add(number)
            if number in table.snapshots and table.snapshots[number].stamp is not None:
                break
    # Iceberg expires the oldest first; what only a lost branch held goes at any time.
    reachable = {number for at in table.refs.values() for number in table.chain(at)}
    oldest = rng.randint(0, max(table.snapshots))
    return [n for n in table.snapshots if n not in kept and (n <= oldest or n not in reachable)]


__all__ = ["NAME", "Broken", "Refused", "Weather", "World"]
