"""One PySpark session for all tests: starting one takes seconds."""

import pytest


@pytest.fixture(scope="session")
def spark():
    # Imported here: other tests also run without pyspark.
    from tests.spark.spark_session import session

    spark = session()
    yield spark
    spark.stop()
