"""Loading the user's pipeline file: once, isolated, with errors that are the user's own."""

from __future__ import annotations

import itertools
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from lodestream.config import nearest
from lodestream.errors import DeclarationError, LodeError, UserCodeError
from lodestream.pipeline.declare import Pipeline, noting_problems

_numbers = itertools.count(1)


def load_pipeline(spec: str, root: Path) -> Pipeline:
    """The pipeline that "pipeline.py" or "pipeline.py:taxi" names, its path taken from `root`."""
    file, name = _split(spec)
    path = (root / Path(file).expanduser()).resolve()
    source = _read(path, root)
    module = _execute(path, source)
    return _pick(module, name, path)


def _split(spec: str) -> tuple[str, str | None]:
    file, colon, name = spec.rpartition(":")
    return (file, name) if colon and name.isidentifier() else (spec, None)


def _read(path: Path, root: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DeclarationError(f"{path} is not UTF-8 text", why=str(error), fix="save it as UTF-8") from error
    except OSError as error:
        close = nearest(path.name, [one.name for one in root.glob("*.py")])
        raise DeclarationError(
            f"there is no pipeline file {path}" if not path.exists() else f"{path} cannot be read",
            why=error.strerror,
            fix=f'did you mean "{close}"?' if close else 'set pipeline = "..." in lode.toml, or start with: lode init',
            file=str(path),
        ) from error


def _execute(path: Path, source: str) -> ModuleType:
    # A name of its own: two projects may both have a pipeline.py, and none may shadow an installed module.
    module = ModuleType(f"lode_pipeline_{next(_numbers)}")
    module.__file__ = str(path)
    with _importable(module, path.parent), noting_problems():
        try:
            exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102
        except LodeError:
            raise
        except SyntaxError as error:
            raise _syntax_error(error, path) from error
        except (Exception, SystemExit) as error:
            raise _user_error(error, path) from error
    return module


@contextmanager
def _importable(module: ModuleType, folder: Path) -> Iterator[None]:
    """The module and the files beside it can be imported while it loads.

    Afterwards the module is unregistered: Spark then ships its functions to the workers by value,
    where a module of that name could not be imported.
    """
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        del sys.modules[module.__name__]
        if str(folder) in sys.path:
            sys.path.remove(str(folder))


def _syntax_error(error: SyntaxError, path: Path) -> DeclarationError:
    file, line = error.filename or str(path), error.lineno or 1
    shown = "".join(traceback.format_exception_only(error)).rstrip()
    return DeclarationError(f"{shown}\n{file}:{line}: not valid Python", file=file, line=line)


# What PySpark says when it is asked to read a type from text before there is a session.
_NO_SESSION = "SESSION_OR_CONTEXT_NOT_EXISTS"


def _user_error(error: BaseException, path: Path) -> UserCodeError:
    own = error.__traceback__.tb_next if error.__traceback__ else None
    shown = "".join(traceback.format_exception(type(error), error, own)).rstrip()
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    fix = f"install {missing}, or put {missing}.py beside the pipeline" if missing else None
    if _NO_SESSION in str(error):
        fix = "Spark starts later: give udf() a type, as in udf(f, StringType()), or make it inside the function"
    return UserCodeError(f"{shown}\n{path} could not be loaded", why=f"it raised {type(error).__name__}", fix=fix)


def _pick(module: ModuleType, name: str | None, path: Path) -> Pipeline:
    found = {key: value for key, value in vars(module).items() if isinstance(value, Pipeline)}
    if name is not None:
        return _named(found, name, path)
    distinct = {id(pipeline): key for key, pipeline in found.items()}
    if len(distinct) == 1:
        return next(iter(found.values()))
    if distinct:
        names = sorted(distinct.values())
        raise DeclarationError(
            f"{path} has {len(names)} pipelines: {', '.join(names)}",
            fix=f'say which: "{path.name}:{names[0]}"',
            file=str(path),
        )
    raise DeclarationError(
        f"{path} has no pipeline",
        why="none of its names is a Pipeline",
        fix='from lodestream import Pipeline; taxi = Pipeline("taxi")',
        file=str(path),
    )


def _named(found: dict[str, Pipeline], name: str, path: Path) -> Pipeline:
    if name in found:
        return found[name]
    close = nearest(name, found)
    raise DeclarationError(
        f'{path} has no pipeline "{name}"',
        why=f"its pipelines: {', '.join(sorted(found)) or 'none'}",
        fix=f'did you mean "{path.name}:{close}"?' if close else f"declare {name} = Pipeline(...) in it",
        file=str(path),
    )
