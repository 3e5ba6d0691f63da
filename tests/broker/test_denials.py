"""Responses to clients that an ACL denies a topic or the cluster."""

import pytest

from tests.broker.acl_requests import create, creation, delete, filtering
from tests.broker.call_handler import call_api, failures, make_cluster


class TestDeniedTopic:
    @pytest.fixture
    def cluster(self):
        made = make_cluster()
        made.add_topic("t", [[1]])
        create(made, creation())
        return made

    def metadata(self, cluster, **values):
        return call_api(cluster, "metadata", 12, **values).topics

    def test_metadata_by_name_omits_id(self, cluster):
        (found,) = self.metadata(cluster, topics=[{"name": "t", "topic_id": None}])

        assert "topic_authorization_failed" == found.error_code.name
        assert ("t", None, ()) == (found.name, found.topic_id, found.partitions)

    def test_metadata_by_id_omits_name(self, cluster):
        topic_id = cluster.topics.by_name("t").topic_id
        topics = [{"name": None, "topic_id": topic_id}]
        (found,) = self.metadata(cluster, topics=topics)

        assert "topic_authorization_failed" == found.error_code.name
        assert (None, topic_id) == (found.name, found.topic_id)

    def test_metadata_of_all_topics_omits_it(self, cluster):
        assert () == self.metadata(cluster, topics=None)

    def test_error_does_not_reveal_existence(self, cluster):
        create(cluster, creation(resource_name="nope"))
        (found,) = self.metadata(cluster, topics=[{"name": "nope", "topic_id": None}])

        assert "topic_authorization_failed" == found.error_code.name

    def test_metadata_does_not_create_it(self):
        cluster = make_cluster(auto_create_topics_enable="true")
        create(
            cluster,
            creation(resource_name="new", operation=8, permission_type=3),
            creation(resource_type=4, resource_name="kafka-cluster", operation=5),
        )
        topics = [{"name": "new", "topic_id": None}]
        (found,) = self.metadata(cluster, topics=topics, allow_auto_topic_creation=True)

        assert "topic_authorization_failed" == found.error_code.name
        assert cluster.topics.by_name("new") is None

    def test_create_partitions_is_rejected(self, cluster):
        topics = [{"name": "t", "count": 4, "assignments": None}]
        (result,) = call_api(cluster, "create_partitions", 3, topics=topics).results

        assert [("topic_authorization_failed", None)] == failures([result])

    def test_cluster_delete_permission_deletes_it(self, cluster):
        topics = [{"name": "t", "topic_id": None}]
        (result,) = call_api(cluster, "delete_topics", 6, topics=topics).responses

        assert not result.error_code

    def test_delete_without_permission_is_rejected(self, cluster):
        create(
            cluster,
            creation(resource_type=4, resource_name="kafka-cluster", operation=6),
        )
        topics = [{"name": "t", "topic_id": None}]
        (result,) = call_api(cluster, "delete_topics", 6, topics=topics).responses

        assert "topic_authorization_failed" == result.error_code.name
        assert cluster.topics.by_name("t") is not None

    def test_create_returns_no_settings(self, cluster):
        create(cluster, creation(resource_name="new"))
        topic = {"name": "new", "num_partitions": 1, "replication_factor": 1}
        (result,) = call_api(cluster, "create_topics", 7, topics=[topic]).topics

        assert [("none", None)] == failures([result])
        assert (29, -1, ()) == (
            result.topic_config_error_code,
            result.num_partitions,
            result.configs,
        )


class TestDeniedCluster:
    @pytest.fixture
    def cluster(self):
        made = make_cluster()
        made.add_topic("t", [[1]])
        create(made, creation(resource_type=4, resource_name="kafka-cluster"))
        return made

    def test_acls_are_not_described_or_altered(self, cluster):
        described = call_api(cluster, "describe_acls", 3, **filtering())
        created = create(cluster, creation(), creation())
        deleted = delete(cluster, filtering())

        error = "cluster_authorization_failed"
        assert error == described.error_code.name
        assert [error, error] == [each.error_code.name for each in created]
        assert [error] == [each.error_code.name for each in deleted]
        assert cluster.authorizer.denies("ALTER", "CLUSTER", "kafka-cluster")

    def test_authorized_operations_are_empty(self, cluster):
        flags = {"include_cluster_authorized_operations": True}
        described = call_api(cluster, "describe_cluster", 1, **flags)
        metadata = call_api(cluster, "metadata", 10, topics=[], **flags)

        assert 0 == described.cluster_authorized_operations
        assert 0 == metadata.cluster_authorized_operations
