"""The process that forks Spark's Python workers, made fit for small batches.

Spark puts its own archives first on the workers' path, and before each task a worker drops its import caches: from an
archive, that means reading its whole directory again, about 100 ms a task. The same modules are installed beside us,
so the archives are taken off the path before anything is imported from them.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from zipimport import zipimporter


def drop_archives() -> None:
    """Import pyspark from where it is installed; if it is only in the archive, leave all as it is."""
    plain = [entry for entry in sys.path if not isinstance(sys.path_importer_cache.get(entry), zipimporter)]
    if "pyspark" in sys.modules or PathFinder.find_spec("pyspark", plain) is None:
        return
    sys.path[:] = plain
    for entry, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            del sys.path_importer_cache[entry]


def main() -> None:
    drop_archives()
    import pyarrow.compute  # noqa: F401 - once here, instead of once in every worker
    from pyspark.daemon import manager

    manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
