"""Resolve the dependencies again and write run.lock and dev.lock. Needs uv on PATH; `./dev lock` calls it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
COMMON = ["pip", "compile", "pyproject.toml", "--universal", "--generate-hashes", "--no-header", "--quiet"]
# The locks hold for the oldest Python that we support and every newer one.
OLDEST = "3.11"
LOCKS = {
    "requirements/run.lock": [],
    # Resolved under run.lock: the tests must run on the very versions that users get.
    "requirements/dev.lock": [
        "--extra=java", "--extra=registry", "--extra=duckdb", "--group=dev", "--constraint=requirements/run.lock"
    ],
}  # fmt: skip


def main() -> int:
    uv = shutil.which("uv")
    if uv is None:
        print(
            "UvMissing: locking needs uv\n  why: it resolves for every Python and platform at once; pip cannot\n"
            "  fix: pip install uv (anywhere; it is not needed for anything else)",
            file=sys.stderr,
        )
        return 3
    # A full path, and no downloads: uv would otherwise fetch a Python of its own.
    python = sys.executable
    environment = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    for target, extra in LOCKS.items():
        print(f"resolving {target} ...", file=sys.stderr)
        command = [uv, *COMMON, f"--python={python}", f"--python-version={OLDEST}", *extra, f"--output-file={target}"]
        done = subprocess.run([*command, *sys.argv[1:]], cwd=HOME, env=environment, check=False)
        if done.returncode != 0:
            return done.returncode
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
