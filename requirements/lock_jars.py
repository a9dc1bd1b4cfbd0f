"""Write src/lodestream/runtime/jars.lock from requirements/jars.toml. Needs `mvn` for the closures, and the network.

python requirements/lock_jars.py           write the lock
python requirements/lock_jars.py --check   exit 1 when the lock is not what would be written
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
LOCK = HERE.parent / "src" / "lodestream" / "runtime" / "jars.lock"
sys.path.insert(0, str(HERE.parent / "src"))

from lodestream.config import RuntimeConfig  # noqa: E402
from lodestream.runtime.lock import maven_path  # noqa: E402
from lodestream.runtime.repository import find_repository  # noqa: E402

HEADER = "# Written by requirements/lock_jars.py from requirements/jars.toml: change that file, not this one.\n"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>lock</groupId><artifactId>lock</artifactId><version>1</version>
<dependencies>{dependencies}</dependencies></project>"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


def main() -> int:
    wanted = tomllib.loads((HERE / "jars.toml").read_text(encoding="utf-8"))
    pairs = [(group, jar) for group, spec in wanted.items() for jar in coordinates(spec)]
    with ThreadPoolExecutor(8) as pool:
        measured = pool.map(lambda pair: measure(pair[1]), pairs)
    text = HEADER + "".join(entry(*pair, *facts) for pair, facts in zip(pairs, measured, strict=True))
    if "--check" in sys.argv:
        return 0 if LOCK.is_file() and LOCK.read_text(encoding="utf-8") == text else 1
    LOCK.write_text(text, encoding="utf-8")
    return 0


def coordinates(spec: dict[str, list[str]]) -> list[str]:
    return spec.get("exact", []) + (closure(spec["closure"]) if "closure" in spec else [])


def closure(roots: list[str]) -> list[str]:
    """What Maven puts on the run-time class path, sorted: the order does not matter to these jars."""
    with tempfile.TemporaryDirectory() as folder:
        pom, listing = Path(folder) / "pom.xml", Path(folder) / "list.txt"
        dependencies = "".join(DEPENDENCY.format(*map(escape, root.split(":"))) for root in roots)
        pom.write_text(POM.format(dependencies=dependencies), encoding="utf-8")
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:list", "-DincludeScope=runtime"]
        subprocess.run([*command, f"-DoutputFile={listing}"], check=True)
        found = re.findall(r"^\s+([\w.\-]+):([\w.\-]+):jar:([\w.\-]+):\w+", listing.read_text(), re.MULTILINE)
    return sorted(":".join(parts) for parts in found)


def measure(coordinate: str) -> tuple[str, int]:
    with find_repository(RuntimeConfig()).open(maven_path(coordinate)) as source:
        content = source.read()
    return hashlib.sha256(content).hexdigest(), len(content)


def entry(group: str, coordinate: str, sha256: str, size: int) -> str:
    return f'\n[[jar]]\ngroup = "{group}"\ncoordinate = "{coordinate}"\nsha256 = "{sha256}"\nsize = {size}\n'


if __name__ == "__main__":
    sys.exit(main())
