"""ApiVersions: announced versions can be decoded, encoded and handled."""

import pytest

from sharecons.testing.broker.apis import APIS, TELEMETRY
from tests.broker.call_handler import call_api, make_cluster


@pytest.mark.parametrize("version", range(5))
def test_versions_of_every_api_are_announced(version):
    response = call_api(make_cluster(), "api_versions", version)

    announced = {
        each.api_key: (each.min_version, each.max_version) for each in response.api_keys
    }
    assert {
        key: (api.versions[0], api.versions[-1])
        for key, api in APIS.items()
        if key not in TELEMETRY
    } == announced


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_announced_apis_have_handlers(api):
    assert callable(api.handle)


@pytest.mark.parametrize("version", [3, 4])
def test_share_groups_and_transactions_are_enabled(version):
    response = call_api(make_cluster(), "api_versions", version)

    levels = {each.name: each.max_version_level for each in response.finalized_features}
    assert (1, 2) == (levels["share.version"], levels["transaction.version"])


def test_old_versions_omit_features_with_minimum_zero():
    older, newer = (
        call_api(make_cluster(), "api_versions", version) for version in (3, 4)
    )

    assert {"metadata.version"} == {each.name for each in older.supported_features}
    assert {"metadata.version", "share.version", "transaction.version"} == {
        each.name for each in newer.supported_features
    }
