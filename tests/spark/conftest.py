"""One PySpark session for all tests: starting one takes seconds."""

import pytest


@pytest.fixture(scope="session")
def spark():
    # Tests that do without have no pyspark, perhaps.
    from tests.spark.spark_session import session

    spark = session()
    yield spark
    spark.stop()
