"""Files on Hadoop's file systems: the local one, and others, by the way of viewfs."""

import os
import uuid

import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from sharecons.spark.pipeline.errors import PublishError
from sharecons.spark.pipeline.files import Files

pytestmark = [
    pytest.mark.slow("Spark starts", seconds=60),
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(params=["file", "viewfs"])
def files(request, spark, tmp_path):
    if request.param == "file":
        yield Files(spark, f"file:{tmp_path}")
        return
    # Hadoop keeps a file system by its name.
    name = f"cluster{uuid.uuid4().hex}"
    hadoop = spark._jsc.hadoopConfiguration()
    hadoop.set(f"fs.viewfs.mounttable.{name}.link./data", f"file:{tmp_path}")
    yield Files(spark, f"viewfs://{name}/data/")
    hadoop.unset(f"fs.viewfs.mounttable.{name}.link./data")


def test_replaced_file_has_its_last_content(files, tmp_path):
    assert files.read("a/x.json") is None

    for content in (b"one", b"two\xff"):
        files.replace("a/x.json", content)
        assert files.read("a/x.json") == content

    visible = [path.name for path in (tmp_path / "a").iterdir() if path.name[0] != "."]
    assert visible == ["x.json"]


def test_synced_file_is_durable_with_its_name(files, tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle)))
    directory = tmp_path / "staging" / "country=N%2FO"
    directory.mkdir(parents=True)
    (directory / "x").write_bytes(b"x")

    files.sync(["staging/country=N%2FO/x"])

    inodes = [each.st_ino for each in synced]
    expected = [directory / "x", directory]
    is_local = files.url("").startswith("file:")
    assert inodes == [path.stat().st_ino for path in expected if is_local]


def test_file_is_moved_once(files):
    files.replace("staging/x", b"x")
    files.replace("staging/y", b"new")
    files.replace("rows/y", b"old")

    for _ in range(2):
        files.move("staging/x", "rows/day=1/x")
    # A store that copies was interrupted before it deleted the source.
    files.move("staging/y", "rows/y")

    assert files.list_files("rows") == ["day=1/x", "y"]
    assert files.list_files("staging") == []
    assert files.read("rows/y") == b"old"


def test_missing_file_is_an_error(files):
    with pytest.raises(PublishError, match="staging/x cannot be renamed to"):
        files.move("staging/x", "rows/x")


def test_hidden_files_are_not_listed(files):
    for name in ("rows/_SUCCESS", "rows/.draft", "rows/a=_x/y", "rows/_t/z", "rows/y"):
        files.replace(name, b"")

    assert files.list_files("rows") == ["a=_x/y", "y"]
    assert files.list_files("none") == []
    assert sorted(files.list_directories("rows")) == ["_t", "a=_x"]
    files.remove("rows")
    files.remove("rows")
    assert not files.exists("rows")
