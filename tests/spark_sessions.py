"""One Spark session for all tests of a process, in a Java that is set up for short work."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from merkhet.core.compute_engines import Engine

LOCAL = Engine("spark", "local[2]", "1GB")
# Optimizing what runs often costs short tests more than it saves.
JAVA_OPTIONS = "spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC\n"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """Tables in a Spark session that later sessions of this process join, too; it ends with the tests."""
    pytest.importorskip("pyspark", reason="the engine spark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    from pyspark.sql import SparkSession

    from merkhet.knowledge.engines import _spark_session as sessions

    folder: Path = tmp_path_factory.mktemp("spark")
    (folder / "spark-defaults.conf").write_text(JAVA_OPTIONS)
    with pytest.MonkeyPatch.context() as settings:
        settings.setenv("SPARK_CONF_DIR", str(folder))
        settings.setattr(sessions, "_PARTS_PER_CORE", 1)
        with sessions.open_spark_tables(LOCAL, folder) as tables, pytest.MonkeyPatch.context() as patch:
            # An inference stops the session that it was given; here others still use it.
            patch.setattr(SparkSession, "stop", lambda session: None)
            yield tables
