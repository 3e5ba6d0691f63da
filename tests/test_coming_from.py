"""The programs of docs/coming-from/: each one sends mails, and processes them."""

import asyncio
import re
from typing import Any

import anyio
import pytest

from sharecons import cli
from sharecons.testing import EmbeddedBroker
from tests.guides import DOCS, Guide
from tests.waiting import until

PAGES = sorted(path.name for path in (DOCS / "coming-from").glob("*.md"))

pytestmark = pytest.mark.anyio


async def load(page: str, package: str, broker: EmbeddedBroker) -> dict[str, Any]:
    """Run the program that imports this package, with short delays.

    Returns:
        The names that it defines, and `group`: its group id.
    """
    guide = Guide(f"coming-from/{page}")
    (number,) = [n for n, b in enumerate(guide.blocks) if f"from {package} " in b]
    program = guide.blocks[number]
    guide.blocks[number] = re.sub(r"\b(after|initial)=[\d.]+", r"\1=0.01", program)
    names: dict[str, Any] = {"servers": broker.bootstrap_servers}
    await guide.run(number, names)
    names["group"] = re.findall(r'group_id="([\w-]+)"', program)[0]
    return names


@pytest.mark.slow("connects by TCP, and leaves")
@pytest.mark.parametrize("page", PAGES)
async def test_program_of_a_page_processes_what_it_sends(
    page: str, share_broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    for topic in ("mails", "mails.dead"):
        share_broker.create_topic(topic)
    names = await load(page, "sharecons", share_broker)
    for address in ("a@example.org", "nowhere"):
        await names["send"](address)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(names["main"])
        await share_broker.wait_until_settled(names["group"])
        tasks.cancel_scope.cancel()

    assert "sent to a@example.org" in capsys.readouterr().out
    dead = [record.value for record in share_broker.records("mails.dead")]
    has_dead_letters = "mails.dead" in Guide(f"coming-from/{page}").text
    assert [b"nowhere" in value for value in dead] == [True] * has_dead_letters


@pytest.mark.slow("aiokafka joins a group over TCP")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_group_of_aiokafka_continues_as_a_share_group(
    share_broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    share_broker.create_topic("mails")
    before = await load("aiokafka.md", "aiokafka", share_broker)
    after = await load("aiokafka.md", "sharecons", share_broker)
    await before["send"]("a@example.org")
    # Not in a task group: its cancellation would interrupt the consumer's stop.
    task = asyncio.create_task(before["main"]())
    await until(lambda: "sent to a@example.org" in capsys.readouterr().out)
    task.cancel()
    await asyncio.wait([task])
    await before["send"]("b@example.org")

    await anyio.to_thread.run_sync(
        migrate, before["group"], after["group"], share_broker
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(after["main"])
        await share_broker.wait_until_settled(after["group"])
        tasks.cancel_scope.cancel()

    sent = re.findall(r"sent to (\S+)", capsys.readouterr().out)
    assert sent == ["b@example.org"]


def migrate(source: str, target: str, broker: EmbeddedBroker) -> None:
    where = ["--bootstrap-server", broker.bootstrap_servers]
    assert 0 == cli.main(["migrate", source, target, "--execute", *where])
