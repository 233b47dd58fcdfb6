"""Spark sessions on this machine or on a cluster."""

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
from merkhet.core.files import disk_full_error, scratch_folder

_MIN_JAVA = 17
_CONNECT_TIMEOUT = 10
_PARTS_PER_CORE = 4


@contextmanager
def open_spark_tables(engine: Engine, work: Path | None = None) -> Iterator[Any]:
    """Start a Spark session and yield its tables, which are in a temporary folder.

    Spark reads further settings from spark-defaults.conf, $SPARK_CONF_DIR and $PYSPARK_SUBMIT_ARGS.

    Args:
        engine: The address of the cluster and the memory of a local session.
        work: The parent of the temporary folder, which all workers of a cluster must be able to access. The default is
            $MERKHET_SPARK_WORK, or else the temporary folder of the system.

    Raises:
        InputError: Java is missing or too old, or the cluster does not answer.
    """
    from merkhet.knowledge.engines._spark_engine import SparkTables

    parent = work or (Path(os.environ["MERKHET_SPARK_WORK"]) if os.environ.get("MERKHET_SPARK_WORK") else None)
    if parent is not None:
        parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder("spark", parent) as folder:
        # Java outlives the session, and later sessions spill into this folder too.
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        session = _start_session(engine, folder)
        tables = SparkTables(session, folder / "tables")
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            yield tables
        except (PySparkException, Py4JError) as error:
            raise _explain_failure(error, folder) from error
        finally:
            with suppress(Exception):  # Stopping fails if Java has died.
                session.stop()


def _start_session(engine: Engine, folder: Path) -> Any:
    _require_java()
    master = engine.address
    _require_cluster(master)
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
        local_settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": _driver_memory(engine),
            "spark.local.dir": str(folder / "spilled"),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.sql.shuffle.partitions": str(_PARTS_PER_CORE * cores),
        }
        for key, value in local_settings.items():
            builder = builder.config(key, value)
    log = folder / "spark.log"
    try:
        with _redirect_stderr(log), _temporary_files_in(folder):
            return builder.getOrCreate()
    except Exception as error:
        raise InputError(
            f"Spark could not be started at {master or 'this machine'}: {_startup_error(log, error)}"
        ) from error


def _explain_failure(error: Exception, folder: Path) -> Exception:
    """Turn a Spark error into an error with advice for the user; return a programming error unchanged."""
    text = str(error)
    if "No space left on device" in text:
        return disk_full_error(folder)
    if "OutOfMemoryError" in text:
        return InputError("Spark is out of memory. Raise the limit with --memory, or use a larger cluster.")
    if "AnalysisException" in type(error).__name__ or "ParseException" in type(error).__name__:
        return error
    return MerkhetError(f"Spark failed: {first_line(error)}. Nothing was changed; run the same command again.")


def _driver_memory(engine: Engine) -> str:
    """Return the memory of a local session in Java's notation: ``engine.memory``, or half of the machine's memory."""
    if engine.memory:
        match = re.match(r"([\d.]+)\s*([kKMGT])", engine.memory)
        assert match is not None
        powers = {"K": 1, "M": 2, "G": 3, "T": 4}
        size = float(match[1]) * 1024 ** powers[match[2].upper()]
    else:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2
    return f"{max(1024, int(size) // 2**20)}m"


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    remedy = f"Install Java {_MIN_JAVA} or newer, or build without --engine spark."
    if java is None or not Path(java).is_file():
        where = f" in JAVA_HOME ({home})" if home else ""
        raise InputError(f"the engine spark needs Java, but there is none{where}. {remedy}")
    version_output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(\d+)', version_output.stderr + version_output.stdout)
    if version_output.returncode or not match:
        raise InputError(f"the engine spark needs Java, and {java} does not run. {remedy}")
    if int(match[1]) < _MIN_JAVA:
        raise InputError(f"the engine spark needs Java {_MIN_JAVA}, and {java} is Java {match[1]}. {remedy}")


def _require_cluster(master: str | None) -> None:
    """Raise InputError if no cluster answers at the address.

    Spark itself would retry for a minute and then continue without a cluster.
    """
    if master is None or not master.startswith("spark://"):
        return
    for node in master.removeprefix("spark://").split(","):
        address = urlsplit(f"spark://{node}")
        try:
            host, port = address.hostname or "", address.port or 7077
            socket.create_connection((host, port), _CONNECT_TIMEOUT).close()
            return
        except (OSError, ValueError) as error:
            last_error = error
    raise InputError(
        f"no Spark cluster answers at {master} ({last_error}). Start it, or check the address after --engine."
    )


@contextmanager
def _redirect_stderr(log: Path) -> Iterator[None]:
    """Redirect stderr to a log file while Java starts; Java keeps writing to the log afterwards."""
    sys.stderr.flush()
    original = os.dup(2)
    with open(log, "ab") as handle:
        os.dup2(handle.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(original, 2)
        os.close(original)


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """Let PySpark create its temporary files in a folder that is removed even after an interrupt."""
    previous, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = previous


def _startup_error(log: Path, error: Exception) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    errors = [line for line in lines if "Exception" in line or "Error" in line]
    return " ".join((errors[0] if errors else str(error)).split())[:300]
