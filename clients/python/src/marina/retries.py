"""When a request is sent again."""

from __future__ import annotations

import random
from typing import Callable, NamedTuple, Optional

# After these nothing was done, whatever the request was.
_NOTHING_DONE = frozenset({"rate_limited", "trading_paused", "exchange_unavailable", "exchange_error"})
# These are stored as never sent, and say so each time.
_NOT_SENT = frozenset({"order_not_sent", "application_not_sent", "allocation_not_sent", "withdrawal_not_sent"})
# The gateway reads these from what it stored: the object of the request, or the other request that has the key.
_SETTLING = _NOT_SENT | {
    "order_rejected",
    "application_rejected",
    "allocation_rejected",
    "withdrawal_rejected",
    "document_rejected",
    "duplicate_order",
    "duplicate_application",
    "duplicate_allocation",
    "duplicate_withdrawal",
    "order_not_cancelable",
    "document_already_delivered",
}
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 10.0


class Failure(NamedTuple):
    """What came of one attempt that failed: an error answer, or no answer at all, which has no status."""

    status: Optional[int] = None
    code: Optional[str] = None
    retry_after_seconds: Optional[int] = None


def wait_before_repeat(
    failure: Failure,
    method: str,
    takes_key: bool,
    attempt: int,
    draw: Callable[[], float] = random.random,
) -> Optional[float]:
    """How many seconds to wait before a request is sent again; None if it must not be.

    It is sent again if nothing was done, or if doing it again does nothing a second time, and only if the same request can
    succeed.
    """
    if not _may_repeat(failure, method, takes_key):
        return None
    # Requests that failed together do not come back together.
    drawn = draw()
    own = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (min(attempt, 20) - 1)) * (0.5 + drawn / 2)
    # A gateway that restarts asks for a second each time, and takes longer. A proxy may ask for none at all.
    return max(own, (failure.retry_after_seconds or 0) * (1 + drawn / 4))


def leaves_unknown(failure: Failure) -> bool:
    """Whether the request may have been done although it failed."""
    status, code, _ = failure
    if status is None:
        return True
    # A 408 is a proxy's, which may have passed the request on.
    if status == 408:
        return code is None
    if 400 <= status < 500:
        return False
    # What is stored as never sent is known. It is 503 without a time to wait. No gateway answers 1xx or 3xx.
    return not (code is not None and (code in _NOTHING_DONE or code in _NOT_SENT))


def settles(failure: Failure) -> bool:
    """Whether an error proves what became of the request, also of earlier attempts with the same key.

    Other refusals prove nothing of an earlier attempt. Some are decided before the gateway looks for an earlier request with the
    key, some come from another server, and an earlier attempt may still arrive.
    """
    return failure.code in _SETTLING


def _may_repeat(failure: Failure, method: str, takes_key: bool) -> bool:
    status, code, retry_after = failure
    is_safe = method != "POST" or takes_key
    if status is None:
        return is_safe
    if code in _NOTHING_DONE:
        return True
    if not is_safe:
        return False
    if status == 429 or code == "document_in_flight":
        return True
    # What answers without a code stands before the gateway.
    if code is None:
        return status == 408 or status >= 500
    # A 503 that may be repeated says when.
    return status >= 500 and (status != 503 or retry_after is not None)
