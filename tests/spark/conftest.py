"""One PySpark session for all tests, and a record of load locks that are held."""

import threading

import pytest

from sharecons.spark.load_lock import LoadLock


@pytest.fixture(scope="session")
def spark():
    # Imported here: other tests also run without pyspark.
    from tests.spark.spark_session import session

    spark = session()
    yield spark
    spark.stop()


@pytest.fixture
def rejections(monkeypatch):
    """A semaphore that is released each time that another process holds a load lock."""
    semaphore = threading.Semaphore(0)
    try_acquire = LoadLock.try_acquire

    def record(lock):
        holder = try_acquire(lock)
        if holder is not None:
            semaphore.release()
        return holder

    monkeypatch.setattr(LoadLock, "try_acquire", record)
    return semaphore
