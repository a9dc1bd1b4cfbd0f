"""Everything Lodestream raises on purpose.

LodeError
├── Transient                    try again: the engine retries these with backoff
│   ├── BrokerUnavailable
│   ├── CatalogUnavailable
│   ├── RegistryUnavailable
│   ├── StorageUnavailable
│   ├── ExecutorLost             Spark lost an executor, a task's result or a cached block
│   ├── SourceUnsettled          a file was still being written
│   ├── SinkUnavailable          a sink did not take what it was given
│   ├── ClockBehind              this machine's clock is behind the table's last commit
│   └── OutcomeUnknown           a commit whose answer was lost; resolved by snapshot id
└── Final                        a person must act: the flow stops
    ├── ConfigError
    ├── DeclarationError         the pipeline as written cannot run
    ├── ContractError            the contract file itself is wrong
    ├── ContractViolation        rows break the contract beyond its limit
    ├── RuntimeMissing           Java, a jar, memory or disk is not there
    ├── JavaEnded                the Java process that runs Spark is gone: the run ends, and is started again
    ├── AnotherWriter            a second run advanced the table
    │   └── AlreadyRuns          another driver holds the lease of the table
    ├── NotOurTable              data without positions
    ├── TableGone                the table itself was dropped while a run kept it
    ├── AuditFailed              the staged snapshot does not add up
    ├── SourceChanged            the input is not the one we were reading
    │   ├── SourceRecreated
    │   ├── SourceGap
    │   └── SourceRewritten
    ├── SinkRefused              changes that a sink lacks are gone
    ├── SourceUnreadable         a file of the source is truncated, corrupt or too large
    └── UserCodeError            a declared function or query raised
"""

from __future__ import annotations


class LodeError(Exception):
    """An error that says what happened, why, and how to fix it."""

    exit_code = 1

    def __init__(self, what: str, *, why: str | None = None, fix: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        lines = [self.what]
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class Transient(LodeError):
    """May pass by itself: retried with backoff."""

    exit_code = 75


class BrokerUnavailable(Transient):
    """Kafka does not answer."""


class CatalogUnavailable(Transient):
    """The catalog does not answer, or refused for a reason that may pass."""


class RegistryUnavailable(Transient):
    """The schema registry does not answer."""


class StorageUnavailable(Transient):
    """A folder or bucket does not answer."""


class ExecutorLost(Transient):
    """Spark lost an executor, what a task had made, or a block that it kept: made again, it fits."""


class SourceUnsettled(Transient):
    """A file changed while it was read: it was still being written. It is read again when it has settled."""


class SinkUnavailable(Transient):
    """A sink raised: its target may be down. What it did not take is given to it again."""


class ClockBehind(Transient):
    """This machine's clock is behind the table's last commit by more than Iceberg lets pass."""


class OutcomeUnknown(Transient):
    """A commit was sent and its answer was lost."""


class Final(LodeError):
    """Will not pass by itself: the flow stops and a person decides."""


class ConfigError(Final):
    """The configuration is wrong. `problems` holds each error when there are several."""

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        why: str | None = None,
        fix: str | None = None,
        problems: tuple[ConfigError, ...] = (),
    ) -> None:
        super().__init__(what, why=why, fix=fix)
        self.problems = problems


class DeclarationError(Final):
    """The pipeline as written cannot run. `file` and `line` say where; `problems` holds each of several."""

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        why: str | None = None,
        fix: str | None = None,
        file: str | None = None,
        line: int | None = None,
        problems: tuple[DeclarationError, ...] = (),
    ) -> None:
        super().__init__(what, why=why, fix=fix)
        self.file = file
        self.line = line
        self.problems = problems


class ContractError(Final):
    """The contract file itself is wrong; `problems` are all of them, each with its line."""

    exit_code = 2

    def __init__(
        self, what: str, *, why: str | None = None, fix: str | None = None, problems: tuple[object, ...] = ()
    ) -> None:
        super().__init__(what, why=why, fix=fix)
        self.problems = problems


class ContractViolation(Final):
    """Rows break the contract beyond its limit."""

    exit_code = 4

    def __init__(
        self,
        what: str,
        *,
        why: str | None = None,
        fix: str | None = None,
        table: str | None = None,
        batch: int | None = None,
        rows: int = 0,
        refused: int = 0,
        reasons: dict[str, int] | None = None,
    ) -> None:
        super().__init__(what, why=why, fix=fix)
        self.table = table
        self.batch = batch
        self.rows = rows
        self.refused = refused
        self.reasons = reasons or {}


class RuntimeMissing(Final):
    """Something the machine must offer is not there."""

    exit_code = 3


class JavaEnded(Final):
    """The Java process that runs Spark is gone. Nothing is lost, and nothing can go on: a supervisor starts anew."""

    exit_code = 9


class AnotherWriter(Final):
    """A second run advanced the table."""

    exit_code = 5


class AlreadyRuns(AnotherWriter):
    """Another driver holds the lease of a table. `holder`: its run, host, pid and since when."""

    def __init__(
        self,
        what: str,
        *,
        why: str | None = None,
        fix: str | None = None,
        holder: dict[str, object] | None = None,
    ) -> None:
        super().__init__(what, why=why, fix=fix)
        self.holder = holder or {}


class NotOurTable(Final):
    """A table holds data and no positions."""


class TableGone(Final):
    """The table was dropped, or the catalog has lost it, while a run kept it."""

    exit_code = 6


class AuditFailed(Final):
    """The staged snapshot does not add up; it stays unpublished on its branch."""

    exit_code = 4


class SourceChanged(Final):
    """The input is not the one the positions speak of."""

    exit_code = 6


class SourceRecreated(SourceChanged):
    """Same name, another identity: a recreated topic or table."""


class SourceGap(SourceChanged):
    """Records between our position and the earliest available are gone."""


class SourceRewritten(SourceChanged):
    """The source table was rolled back, overwritten or deleted from."""


class SinkRefused(Final):
    """Changes that a sink lacks have expired or were rolled back, and it is not to be given the whole table."""

    exit_code = 6


class SourceUnreadable(Final):
    """A file of the source is truncated, corrupt or holds a value that is too large."""

    exit_code = 6


class UserCodeError(Final):
    """A declared function or query raised."""
