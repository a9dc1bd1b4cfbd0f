"""How the driver's JVM collects and compiles, chosen for the first minute and the tenth, from the machine's size."""

from __future__ import annotations

from dataclasses import dataclass

from lodestream.runtime.sizing import MIB

# On a heap up to this size a full collection by one thread is short.
_MOST_SERIAL = 2048 * MIB
# Out of heap, any thread of the process may have failed anywhere: it ends, and the run with it, to be started again.
_NO_HALF_LIFE = "-XX:+ExitOnOutOfMemoryError"


# The second compiler takes what ran twenty times as often as by default. The first minute, in which a thousand methods
# are warm and none is hot, then costs a third less; the loops of a large batch are hot within its first second.
_LATE = (
    "-XX:Tier4InvocationThreshold=100000",
    "-XX:Tier4MinInvocationThreshold=12000",
    "-XX:Tier4CompileThreshold=300000",
    "-XX:Tier4BackEdgeThreshold=800000",
)
_ALWAYS = (*_LATE, "-XX:-UsePerfData", _NO_HALF_LIFE)


@dataclass(frozen=True, slots=True)
class JvmChoice:
    collector: str
    options: tuple[str, ...]


def jvm_choice(heap: int, cores: int) -> JvmChoice:
    """Both compilers always: with the quick one alone, whatever waits is worked off four to six times slower."""
    if cores <= 2 or heap <= _MOST_SERIAL:
        # It needs no threads and no side tables, and the heap follows what is in use: memory that a large batch needed
        # goes back.
        shape = ("-XX:MinHeapFreeRatio=20", "-XX:MaxHeapFreeRatio=50")
        return JvmChoice("serial", ("-XX:+UseSerialGC", *shape, *_ALWAYS))
    return JvmChoice("G1", ("-XX:+UseG1GC", *_ALWAYS))
