"""How the driver's JVM collects and compiles, chosen for the first minute and the tenth, from the machine's size."""

from __future__ import annotations

from dataclasses import dataclass

from lodestream.runtime.sizing import MIB

# On a heap up to this size a full collection by one thread is short.
_MOST_SERIAL = 2048 * MIB
# Out of heap, any thread of the process may have failed anywhere: it ends, and the run with it, to be started again.
_NO_HALF_LIFE = "-XX:+ExitOnOutOfMemoryError"


@dataclass(frozen=True, slots=True)
class JvmChoice:
    collector: str
    options: tuple[str, ...]


def jvm_choice(heap: int, cores: int) -> JvmChoice:
    """Both compilers always: with the quick one alone a start is a second or two shorter, and whatever waits is worked
    off four to six times slower, for ever."""
    if cores <= 2 or heap <= _MOST_SERIAL:
        # It needs no threads and no side tables, and the heap follows what is in use: memory that a large batch needed
        # goes back.
        shape = ("-XX:MinHeapFreeRatio=20", "-XX:MaxHeapFreeRatio=50")
        return JvmChoice("serial", ("-XX:+UseSerialGC", *shape, *_ALWAYS))
    return JvmChoice("G1", ("-XX:+UseG1GC", *_ALWAYS))


_ALWAYS = ("-XX:-UsePerfData", _NO_HALF_LIFE)
