"""Hadoop's default filesystem, and the check of paths against it."""

import pytest

from sharecons.errors import ConfigurationError
from sharecons.spark.factory import open_driver
from sharecons.spark.hadoop_conf import check_location, find_default_filesystem
from sharecons.spark.options import read_options

CORE = """<?xml version="1.0"?>
<configuration>
  <property><name>io.file.buffer.size</name><value>131072</value></property>
  <property><name>{name}</name><value> {value} </value></property>
</configuration>
"""


def core_site(directory, value, name="fs.defaultFS"):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "core-site.xml").write_text(CORE.format(name=name, value=value))
    return str(directory)


def defaults(directory, *lines):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "spark-defaults.conf").write_text("\n".join(lines))
    return str(directory)


def url(environment):
    found = find_default_filesystem(environment)
    return None if found is None else found.url


def test_default_filesystem_without_files_is_unknown(tmp_path):
    assert url({}) is None
    assert url({"HADOOP_CONF_DIR": str(tmp_path), "SPARK_HOME": "/not/there"}) is None


@pytest.mark.parametrize("name", ["HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR"])
def test_core_site_of_a_configuration_directory_is_read(tmp_path, name):
    assert url({name: core_site(tmp_path, "hdfs://one:8020")}) == "hdfs://one:8020"


def test_older_name_of_the_property_is_read(tmp_path):
    where = core_site(tmp_path, "hdfs://one", name="fs.default.name")
    assert url({"HADOOP_CONF_DIR": where}) == "hdfs://one"


def test_classpath_of_spark_is_searched(tmp_path):
    where = core_site(tmp_path / "etc", "hdfs://one")
    path = f"/jars/*:{where}:/more/*"
    assert url({"SPARK_DIST_CLASSPATH": path}) == "hdfs://one"


@pytest.mark.parametrize("line", ["spark.hadoop.fs.defaultFS  {}", "{}={}", "{}: {}"])
def test_spark_defaults_precede_core_site(tmp_path, line):
    line = line.replace("{}", "spark.hadoop.fs.defaultFS", line.count("{}") - 1)
    defaults(tmp_path / "home/conf", "# a comment", "", line.format("s3a://b"))
    environment = {
        "SPARK_HOME": str(tmp_path / "home"),
        "HADOOP_CONF_DIR": core_site(tmp_path / "hadoop", "hdfs://one"),
    }
    assert url(environment) == "s3a://b"


def test_spark_conf_dir_replaces_spark_home(tmp_path):
    environment = {
        "SPARK_HOME": str(tmp_path / "home"),
        "SPARK_CONF_DIR": str(tmp_path / "conf"),
    }
    defaults(tmp_path / "home/conf", "spark.hadoop.fs.defaultFS hdfs://one")
    assert url(environment) is None
    defaults(tmp_path / "conf", "spark.hadoop.fs.defaultFS hdfs://two")
    assert url(environment) == "hdfs://two"


@pytest.mark.parametrize("text", ["<configuration><prop", "", "\0"])
def test_invalid_core_site_is_ignored(tmp_path, text):
    (tmp_path / "core-site.xml").write_text(text)
    assert url({"HADOOP_CONF_DIR": str(tmp_path)}) is None


def test_path_is_rejected_if_the_default_is_not_local(tmp_path):
    environment = {"HADOOP_CONF_DIR": core_site(tmp_path, "hdfs://one:8020/")}

    with pytest.raises(ConfigurationError) as caught:
        check_location("/data/ledger", environment)
    assert str(caught.value) == (
        "ledgerLocation '/data/ledger' has no scheme, and paths without one are on "
        f"hdfs://one:8020 for Spark (fs.defaultFS in {tmp_path}/core-site.xml); write "
        "file:///data/ledger for the disk of the driver's machine, or "
        "hdfs://one:8020/data/ledger"
    )


@pytest.mark.parametrize("location", ["file:///data", "hdfs://two/data", "s3://b/data"])
def test_location_with_a_scheme_is_accepted(tmp_path, location):
    check_location(location, {"HADOOP_CONF_DIR": core_site(tmp_path, "hdfs://one")})


@pytest.mark.parametrize("default", ["file:///", "local:///", "/", "${some.where}"])
def test_path_is_accepted_if_the_default_is_local_or_unknown(tmp_path, default):
    check_location("/data", {"HADOOP_CONF_DIR": core_site(tmp_path, default)})


def test_driver_rejects_a_ledger_path_that_spark_resolves_elsewhere(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HADOOP_CONF_DIR", core_site(tmp_path / "etc", "hdfs://one"))
    monkeypatch.chdir(tmp_path)
    given = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "orders"}
    given |= {"kafka.share.group.id": "billing", "ledgerLocation": "ledger"}

    with pytest.raises(ConfigurationError, match="ledgerLocation 'ledger' has no"):
        open_driver(read_options(given))
    assert not (tmp_path / "ledger").exists()
