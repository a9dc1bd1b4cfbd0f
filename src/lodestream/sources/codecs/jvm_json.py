"""JSON decoded inside Spark's own JVM: no Python worker, no second copy of the rows.

The decoder is the Java in `jvm/`, compiled at first use by Janino, the compiler that Spark carries for its own
generated code, and given to the executors as a jar. It follows the same rules as `JsonCodec`; the tests hold the two
together.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lodestream.sources.codecs.json.codec import JsonCodec

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_log = logging.getLogger(__name__)
_SOURCES = Path(__file__).parent / "jvm"
_loaded: set[str] = set()
_loading = threading.Lock()
_decoders: dict[tuple[str, JsonCodec], Any] = {}


def runs_here(spark: SparkSession) -> bool:
    """Whether this session's JVM is within reach: a Spark Connect client has none."""
    return hasattr(spark, "_jsparkSession")


def json_column(spark: SparkSession, codec: JsonCodec, value: str) -> Column:
    """A struct column: the codec's columns and, last, `_error`."""
    from pyspark.sql.classic.column import Column

    jvm: Any = spark.sparkContext._jvm
    bridge = jvm.org.apache.spark.sql.classic.ExpressionUtils
    child = bridge.expression(jvm.org.apache.spark.sql.functions.col(value))
    children = jvm.org.apache.spark.api.python.PythonUtils.toSeq([child]).toSeq()
    applied = jvm.org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression(_decoder(spark, codec), children)
    return Column(bridge.column(applied))


def warm_up(spark: SparkSession) -> None:
    """Compile and load the decoder now, so that the first batch need not wait for it (about two seconds)."""
    if runs_here(spark):
        _load(spark, spark.sparkContext._jvm)


def _decoder(spark: SparkSession, codec: JsonCodec) -> Any:
    """The codec's Java counterpart, made once: a batch is too short for a dozen calls into the JVM."""
    place = (spark.sparkContext.applicationId, codec)
    if place not in _decoders:
        jvm: Any = spark.sparkContext._jvm
        _load(spark, jvm)
        limits = codec.limits
        columns = jvm.org.apache.spark.sql.types.DataType.fromJson(json.dumps(_struct_json(spark, codec)))
        decoder = jvm.lodestream.codecs.JsonDecoder(columns, limits.value_bytes, limits.items, limits.depth)
        _decoders[place] = decoder
    return _decoders[place]


def _struct_json(spark: SparkSession, codec: JsonCodec) -> dict[str, Any]:
    schema = spark.sparkContext._jvm.org.apache.spark.sql.types.StructType.fromDDL(codec.ddl)  # type: ignore[union-attr]
    found: dict[str, Any] = json.loads(schema.json())
    for field, column in zip(found["fields"], codec.shape.columns, strict=True):
        field["metadata"] = {
            "sources": list(column.sources),
            "any_case": column.any_case,
            "scalar_text": column.scalar_text,
            "non_finite": column.non_finite,
            "hidden": column.hidden,
            "half_up": column.half_up,
        }
    return found


def _load(spark: SparkSession, jvm: Any) -> None:
    context = spark.sparkContext
    with _loading:
        if context.applicationId in _loaded:
            return
        started = time.monotonic()
        folder = Path(jvm.org.apache.spark.util.Utils.createTempDir().getPath())
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        _compile(context, jvm, loader, folder / "classes")
        jar = _pack(folder / "classes", folder / "lodestream-codecs.jar")
        loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
        context._jsc.addJar(str(jar))
        _loaded.add(context.applicationId)
    _log.info("codecs.compiled ms=%d", (time.monotonic() - started) * 1000)


def _compile(context: Any, jvm: Any, loader: Any, classes: Path) -> None:
    sources = sorted(_SOURCES.glob("*.java"))
    files = context._gateway.new_array(jvm.java.io.File, len(sources))
    for place, source in enumerate(sources):
        files[place] = jvm.java.io.File(str(source))
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
    compiler.setDestinationDirectory(jvm.java.io.File(str(classes)), False)
    compiler.compile(files)


def _pack(classes: Path, jar: Path) -> Path:
    with zipfile.ZipFile(jar, "w") as packed:
        for file in sorted(classes.rglob("*.class")):
            packed.write(file, file.relative_to(classes).as_posix())
    return jar
