"""Spark sessions: started on this machine or at a cluster, with a clear word where that cannot be."""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from merkhet.core.compute_engines import Engine
from merkhet.core.errors import InputError, MerkhetError, first_line
from merkhet.core.files import disk_full_error

_OLDEST_JAVA = 17
_SECONDS = 10
_PARTS_PER_CORE = 4


@contextmanager
def open_spark_tables(engine: Engine, work: Path | None = None) -> Iterator[Any]:
    """Tables in Spark, in a folder that goes away at the end.

    ``work`` is a folder that all workers of a cluster see ($MERKHET_SPARK_WORK by default, else a temporary one).
    Settings of Spark itself are Spark's own (spark-defaults.conf, $SPARK_CONF_DIR, $PYSPARK_SUBMIT_ARGS). Refuses a
    machine without Java, and a cluster that does not answer.
    """
    from merkhet.knowledge.engines._spark_engine import SparkTables

    given = work or (Path(os.environ["MERKHET_SPARK_WORK"]) if os.environ.get("MERKHET_SPARK_WORK") else None)
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="merkhet-spark-", dir=given))
    try:
        session = _session(engine, folder)
        tables = SparkTables(session, folder / "tables")
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            yield tables
        except (PySparkException, Py4JError) as error:
            raise _failure(error, folder) from error
        finally:
            with suppress(Exception):  # A Java that has died cannot be stopped.
                session.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        # Java lives on, and spills for later sessions where it did for its first.
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


def _session(engine: Engine, folder: Path) -> Any:
    _refuse_without_java()
    master = engine.address
    _refuse_silent_cluster(master)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession
    # PySpark logs every error that it raises, too.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    cores = os.cpu_count() or 1
    builder = SparkSession.builder.appName("merkhet").master(master or "local[*]")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.ansi.enabled", "true")
    if master is None or master.startswith("local"):
        own = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": _memory(engine),
            "spark.local.dir": str(folder / "spilled"),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.sql.shuffle.partitions": str(_PARTS_PER_CORE * cores),
        }
        for key, value in own.items():
            builder = builder.config(key, value)
    log = folder / "spark.log"
    try:
        with _chatter_into(log):
            return builder.getOrCreate()
    except Exception as error:
        raise InputError(f"Spark could not be started at {master or 'this machine'}: {_reason(log, error)}") from error


def _failure(error: Exception, folder: Path) -> Exception:
    """What a user can do about an error of Spark; errors that are ours stay as they are."""
    text = str(error)
    if "No space left on device" in text:
        return disk_full_error(folder)
    if "OutOfMemoryError" in text:
        return InputError("Spark has run out of memory. Give it more with --memory, or a cluster with more machines.")
    if "AnalysisException" in type(error).__name__ or "ParseException" in type(error).__name__:
        return error
    return MerkhetError(f"Spark has failed: {first_line(error)}. Nothing was changed; start the same command again.")


def _memory(engine: Engine) -> str:
    """Memory for Spark on this machine, as Java writes it: what was said, or half of what there is."""
    if engine.memory:
        found = re.match(r"([\d.]+)\s*([kKMGT])", engine.memory)
        assert found is not None
        powers = {"K": 1, "M": 2, "G": 3, "T": 4}
        size = float(found[1]) * 1024 ** powers[found[2].upper()]
    else:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2
    return f"{max(1024, int(size) // 2**20)}m"


def _refuse_without_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    remedy = f"Install Java {_OLDEST_JAVA} or newer, or build without --engine spark."
    if java is None or not Path(java).is_file():
        where = f" in JAVA_HOME ({home})" if home else ""
        raise InputError(f"the engine spark needs Java, and there is none{where}. {remedy}")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', told.stderr + told.stdout)
    if told.returncode or not found:
        raise InputError(f"the engine spark needs Java, and {java} does not run. {remedy}")
    if int(found[1]) < _OLDEST_JAVA:
        raise InputError(f"the engine spark needs Java {_OLDEST_JAVA}, and {java} is Java {found[1]}. {remedy}")


def _refuse_silent_cluster(master: str | None) -> None:
    """Spark itself would try for a minute and then go on without a cluster."""
    if master is None or not master.startswith("spark://"):
        return
    for one in master.removeprefix("spark://").split(","):
        place = urlsplit(f"spark://{one}")
        try:
            host, port = place.hostname or "", place.port or 7077
            socket.create_connection((host, port), _SECONDS).close()
            return
        except (OSError, ValueError) as error:
            last = error
    raise InputError(f"no Spark cluster answers at {master} ({last}). Start it, or check the address after --engine.")


@contextmanager
def _chatter_into(log: Path) -> Iterator[None]:
    """What Java says on starting goes to a file, and so does all it says later: it keeps what it was started with."""
    sys.stderr.flush()
    before = os.dup(2)
    with open(log, "ab") as handle:
        os.dup2(handle.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _reason(log: Path, error: Exception) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    told = [line for line in lines if "Exception" in line or "Error" in line]
    return " ".join((told[0] if told else str(error)).split())[:300]
