"""A job tracker, and the events of one delivery."""

from sharecons.demo.job_tracker import JobTracker
from sharecons.demo.plan import Decision

__all__ = ["ACCEPT", "REJECT", "RELEASE", "complete", "new_tracker"]

ACCEPT, RELEASE, REJECT = Decision.ACCEPT, Decision.RELEASE, Decision.REJECT


def new_tracker(jobs, *names):
    tracker = JobTracker(names or ("ada", "bob"), expected=jobs)
    tracker.on_produced(range(1, jobs + 1))
    return tracker


def complete(tracker, job, who, count=1, verdict=ACCEPT):
    """Report a delivery, its acknowledgement and the confirmation."""
    tracker.on_delivered(job, who, count, now=1.0)
    tracker.on_acknowledged(job, who, verdict, now=2.0)
    tracker.on_ack_confirmed(job, who, verdict, now=3.0)
