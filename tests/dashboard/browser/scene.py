"""Groups in known states, for pictures and comparisons; and a dashboard of them."""

from contextlib import contextmanager
from typing import NamedTuple

import anyio
from anyio.from_thread import start_blocking_portal

from sharecons import ShareConsumer, ShareGroupAdmin, TopicPartition
from sharecons.cli.run.health import serve_health
from sharecons.metrics.families import MetricFamily
from sharecons.testing.kafka import KafkaCluster
from tests.cli.processes import start
from tests.dashboard.serving import HOSTILE
from tests.dead_letters.letters import new_letter, write_letters

__all__ = ["PARTITIONS", "Scene", "make_scene", "served"]

PARTITIONS = 500
REASON = """\
failed after 5 attempts: ValueError: no such customer: 1042
Traceback (most recent call last):
  File "/app/orders.py", line 31, in handle
    customer = customers[order["customer"]]
ValueError: no such customer: 1042"""


class Scene(NamedTuple):
    """Names of what was made on a broker.

    Attributes:
        kind: "kafka" or "embedded".
        group: of a topic with one partition, in which offsets have each status.
        wide: a group of PARTITIONS partitions.
        hostile: a group and its client, whose names are HOSTILE.
        dead: a topic of dead letters.
        empty: a group that can be deleted.
    """

    kind: str
    bootstrap_servers: str
    topic: str
    group: str
    wide: str
    hostile: str
    dead: str
    empty: str


def make_scene(kafka):
    admin = kafka.admin
    topic, wide = admin.create_topic(1), admin.create_topic(PARTITIONS)
    dead = admin.create_topic(1, f"{topic}.dead")
    scene = Scene(
        "kafka" if isinstance(kafka.cluster, KafkaCluster) else "embedded",
        kafka.bootstrap_servers,
        topic,
        f"billing-{topic}",
        f"wide-{topic}",
        f"{HOSTILE}-{topic}",
        dead,
        f"empty-{topic}",
    )
    admin.produce(topic, [b'{"order": %d}' % n for n in range(300)])
    for partition in range(0, PARTITIONS, 5):
        admin.produce(wide, [b"x"] * (1 + partition % 7), partition=partition)
    anyio.run(_fill, scene, wide)
    return scene


async def _fill(scene, wide):
    async with ShareGroupAdmin(bootstrap_servers=scene.bootstrap_servers) as admin:
        for group in (scene.group, scene.hostile):
            config = {"share.auto.offset.reset": "earliest"}
            (await admin.alter_group_configs(group, config)).value  # noqa: B018
        starts = {TopicPartition(wide, number): 0 for number in range(PARTITIONS)}
        (await admin.alter_share_group_offsets(scene.wide, starts)).check()
        start = {TopicPartition(scene.topic, 0): 0}
        (await admin.alter_share_group_offsets(scene.empty, start)).check()
    await _settle(scene, scene.group)
    await _settle(scene, scene.hostile, client_id=HOSTILE)
    letters = [
        new_letter(number, headers=((HOSTILE, HOSTILE.encode()),), reason=REASON)
        for number in range(5)
    ]
    await write_letters(scene.bootstrap_servers, letters, topic=scene.dead)


async def _settle(scene, group_id, **options):
    """Accept the first records; release, reject and accept some of the next ones."""
    async with ShareConsumer(
        scene.topic,
        group_id=group_id,
        bootstrap_servers=scene.bootstrap_servers,
        acknowledgement="explicit",
        **options,
    ) as consumer:
        seen = 0
        with anyio.fail_after(30):
            while seen < 120:
                for record in await consumer.poll(timeout=1.0):
                    seen += 1
                    if record.delivery_count > 1 or record.offset > 110:
                        record.release()
                    elif record.offset < 40 or record.offset // 12 % 3 == 2:
                        record.accept()
                    elif record.offset // 12 % 3 == 0:
                        record.reject()
                    else:
                        record.release()
                await consumer.commit()


def families(group):
    running, outcomes = {(group,): 7}, {(group, "orders", "accepted"): 1000}
    name, labels = "sharecons_worker_outcomes_total", ("group", "topic", "outcome")
    yield MetricFamily(
        "sharecons_worker_records_running", "gauge", "Running.", ("group",), running
    )
    yield MetricFamily(name, "counter", "Outcomes.", labels, outcomes)


@contextmanager
def served(scene, *options):
    """Run `sharecons dashboard` on the scene's groups, with changes and a worker."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            serve_health(
                "127.0.0.1",
                0,
                live=lambda: None,
                ready=lambda: "held-window: orders-0@7 is not settled for 2 min",
                families=lambda: families(scene.group),
            )
        ) as port,
        start(
            scene,
            *("dashboard", "--port", "0", "--interval", "1", "--allow-changes"),
            *("--worker", f"http://127.0.0.1:{port}"),
            *("--group", f"*-{scene.topic}"),
            *options,
        ) as process,
    ):
        line = process.stdout.readline().decode()
        assert line.startswith("dashboard: "), process.stderr.read().decode()
        yield line.split()[1]
