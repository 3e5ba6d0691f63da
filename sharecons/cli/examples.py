"""The examples at the end of each command's help; a test parses them."""

from collections.abc import Mapping
from typing import Final

__all__ = ["EXAMPLES"]

EXAMPLES: Final[Mapping[str, str]] = {
    "sharecons": """\
`sharecons COMMAND --help` has the options of a command, and examples. The
environment variable SHARECONS_BOOTSTRAP_SERVERS names the cluster, as does
--bootstrap-server HOST:PORT of each command that needs one.

without a Kafka:
  sharecons demo
  sharecons broker --topic orders:6

examples:
  sharecons preflight --topic orders
  sharecons groups describe billing
  sharecons groups inspect billing""",
    "sharecons broker": """\
  sharecons broker --topic orders:6 --topic orders.dead
  sharecons broker --brokers 3 --port 0""",
    "sharecons consume": """\
  sharecons consume orders --group billing --from-beginning
  sharecons consume orders --group billing --json --max-messages 10""",
    "sharecons create-topics": """\
  sharecons create-topics orders:6 refunds:6 --replication-factor 3
  sharecons create-topics --topic orders --retry-topic orders.retry=60 \\
      --dead-letter orders.dead""",
    "sharecons dashboard": """\
  sharecons dashboard --bootstrap-server localhost:9092
  sharecons dashboard --group 'billing-*' --worker http://10.0.0.7:9931""",
    "sharecons dead-letters": """\
  sharecons dead-letters list orders.dead
  sharecons dead-letters redrive orders.dead --dry-run""",
    "sharecons dead-letters list": """\
  sharecons dead-letters list orders.dead --not-redriven
  sharecons dead-letters list orders.dead --filter 'reason~timeout' --limit 20""",
    "sharecons dead-letters show": """\
  sharecons dead-letters show orders.dead 0:17""",
    "sharecons dead-letters redrive": """\
  sharecons dead-letters redrive orders.dead --filter group=billing --dry-run
  sharecons dead-letters redrive orders.dead --rate 100
  sharecons dead-letters redrive orders.dead --only 0:17 --again""",
    "sharecons dead-letters delete": """\
  sharecons dead-letters delete orders.dead --before 0:18 --dry-run
  sharecons dead-letters delete orders.dead --before 0:18 --execute""",
    "sharecons demo": """\
  sharecons demo
  sharecons demo --open
  sharecons demo --bootstrap-server localhost:9092 --jobs 500""",
    "sharecons exporter": """\
  sharecons exporter --host 0.0.0.0 --bootstrap-server localhost:9092
  sharecons exporter --group 'billing-*' --level topic""",
    "sharecons groups": """\
  sharecons groups list
  sharecons groups describe billing
  sharecons groups --describe --group billing --members""",
    "sharecons groups list": """\
  sharecons groups list --state Empty
  sharecons groups list --type all --json""",
    "sharecons groups describe": """\
  sharecons groups describe billing
  sharecons groups describe --all-groups --state""",
    "sharecons groups members": """\
  sharecons groups members billing --verbose""",
    "sharecons groups offsets": """\
  sharecons groups offsets billing
  sharecons groups offsets --all-groups --json""",
    "sharecons groups state": """\
  sharecons groups state billing --verbose""",
    "sharecons groups configure": """\
  sharecons groups configure billing
  sharecons groups configure billing --set share.auto.offset.reset=earliest
  sharecons groups configure billing --unset share.record.lock.duration.ms""",
    "sharecons groups reset-offsets": """\
One of --dry-run and --execute is needed, and the group must have no members.

examples:
  sharecons groups reset-offsets billing --topic orders --to-earliest --dry-run
  sharecons groups reset-offsets billing --topic orders:0,1 --to-offset 1200 \\
      --execute
  sharecons groups reset-offsets billing --all-topics \\
      --to-datetime 2026-11-21T10:00:00 --execute""",
    "sharecons groups delete-offsets": """\
  sharecons groups delete-offsets billing --topic orders""",
    "sharecons groups delete": """\
  sharecons groups delete billing --dry-run
  sharecons groups delete billing""",
    "sharecons groups inspect": """\
  sharecons groups inspect billing
  sharecons groups inspect billing --watch
  sharecons groups inspect billing --topic orders:0 --offsets
  sharecons groups inspect billing --check --json""",
    "sharecons migrate": """\
  sharecons migrate orders-app billing
  sharecons migrate orders-app billing --missing earliest --execute""",
    "sharecons peek": """\
  sharecons peek orders --max 20
  sharecons peek orders --partition 0 --from -5
  sharecons peek orders --group billing --json""",
    "sharecons preflight": """\
  sharecons preflight
  sharecons preflight --topic orders --group billing --dead-letter orders.dead""",
    "sharecons produce": """\
  printf 'tea\\nmilk\\n' | sharecons produce orders
  printf '7:tea\\n' | sharecons produce orders --key-separator :
  printf 'tea\\n' | sharecons produce orders --header source=shell""",
    "sharecons run": """\
  sharecons run app:charge --topic orders --group billing
  sharecons run app:worker --processes 4 --health-port 9931
  sharecons run app:charge --topic orders --group billing --reload""",
}
"""Texts by commands. Lines that begin with two spaces are shown as they are."""
