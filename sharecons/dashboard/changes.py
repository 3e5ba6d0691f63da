"""Changes: planned, confirmed, run, and kept in a log with their results."""

import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from anyio.abc import TaskGroup

from sharecons.admin import ShareGroupAdmin
from sharecons.dashboard.guard import User
from sharecons.dashboard.plans import PLANS, Fields, Plan, Results
from sharecons.errors import ConfigurationError, Error
from sharecons.log import get_logger

__all__ = ["Change", "Changes"]

MAX_CHANGES: Final = 200
MAX_PLANS: Final = 100
PLAN_SECONDS: Final = 600.0
"""Seconds for which a plan can be confirmed, as its values get old."""


@dataclass(slots=True, kw_only=True)
class Change:
    """A change that was begun.

    Attributes:
        user: who confirmed it.
        at: when, in seconds since the epoch.
        progress: how far it is.
        results: a line for each item, once it has ended.
    """

    what: str
    user: str
    at: float
    state: Literal["running", "done", "failed", "interrupted"] = "running"
    progress: str = ""
    results: Results = ()


class Changes:
    """Plans that wait for their confirmation, and the log of changes.

    A plan is run once, by the user who made it. Changes run in the dashboard's tasks:
    a page that is closed ends none. A change that the end of the process interrupts can
    be made again: a redrive then continues, all others are made as a whole.

    Args:
        on_changed: is called when a change begins, ends or gets further.
    """

    def __init__(self, admin: ShareGroupAdmin, on_changed: Callable[[], None]) -> None:
        self._admin = admin
        self._on_changed = on_changed
        self._plans: dict[str, tuple[float, User, Plan]] = {}
        self._log = get_logger(__name__)
        self.latest: deque[Change] = deque(maxlen=MAX_CHANGES)
        self.tasks: TaskGroup | None = None

    async def plan(self, kind: str, fields: Fields, user: User) -> tuple[str, Plan]:
        """Return a plan, and the key with which it is confirmed.

        Raises:
            ConfigurationError: there is no such change, or a field is wrong.
            Others as the admin client and `DeadLetters`.
        """
        if kind not in PLANS:
            raise ConfigurationError(f"there is no change {kind!r}")
        made = await PLANS[kind](self._admin, fields)
        self._forget_old_plans()
        key = secrets.token_urlsafe(16)
        self._plans[key] = time.monotonic(), user, made
        return key, made

    def confirm(self, key: str, user: User) -> Change:
        """Begin the planned change.

        Raises:
            ConfigurationError: there is no such plan of this user, or no more.
        """
        self._forget_old_plans()
        entry = self._plans.get(key)
        if entry is None or entry[1] != user or self.tasks is None:
            raise ConfigurationError(
                "this plan was confirmed before, or is too old: make it again"
            )
        plan = self._plans.pop(key)[2]
        change = Change(what=plan.what, user=user.name, at=time.time())
        self.latest.appendleft(change)
        self._log.info("change begun", change=plan.what, user=user.name)
        self.tasks.start_soon(self._run, change, plan)
        return change

    async def _run(self, change: Change, plan: Plan) -> None:
        def progress(text: str) -> None:
            change.progress = text
            self._on_changed()

        self._on_changed()
        try:
            change.results = await plan.run(progress)
            change.state = "done"
        except Error as error:
            change.results = (str(error),)
            change.state = "failed"
        except BaseException:
            change.state = "interrupted"
            raise
        finally:
            self._log.info(
                "change ended",
                change=plan.what,
                user=change.user,
                state=change.state,
            )
            self._on_changed()

    def _forget_old_plans(self) -> None:
        oldest = time.monotonic() - PLAN_SECONDS
        kept = [(key, each) for key, each in self._plans.items() if each[0] > oldest]
        self._plans = dict(kept[-MAX_PLANS:])
