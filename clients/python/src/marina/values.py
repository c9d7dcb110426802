"""Turns the values that a caller gives into what JSON has for them."""

from __future__ import annotations

import datetime
import decimal
import enum
import operator
import uuid
from typing import Any, Mapping

# The contract's whole numbers have 64 bits.
_LEAST, _GREATEST = -(2**63), 2**63 - 1
# No request is nested deeper.
_MAX_DEPTH = 8


def plain_value(name: str, value: Any, depth: int = 0) -> Any:
    """The text, whole number, boolean, list or dict that a value stands for. Nothing is rounded.

    An enum stands for its value, numpy's numbers and texts for Python's, a whole Decimal for its number, a date for
    `YYYY-MM-DD`, a time for the same time in UTC, and a UUID for its text. Raises a TypeError for other values, also for
    floats, and a ValueError for numbers that no field can have.
    """
    if depth > _MAX_DEPTH:
        raise ValueError(f"`{name}` is nested too deeply.")
    if value is None or value is True or value is False:
        return value
    if isinstance(value, enum.Enum):
        return plain_value(name, value.value, depth + 1)
    if isinstance(value, str):
        # A subclass may write itself in another way.
        return str.__str__(value)
    if isinstance(value, decimal.Decimal):
        return _whole_decimal(name, value)
    if isinstance(value, (datetime.date, uuid.UUID)):
        return _text(name, value)
    # numpy's scalars, and its arrays without a dimension. A scalar of pandas or of a tensor has the same two members.
    if hasattr(value, "dtype") and getattr(value, "ndim", None) == 0:
        return plain_value(name, value.item(), depth + 1)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        value = value.tolist()
    if hasattr(value, "__index__"):
        return _bounded(name, operator.index(value))
    if isinstance(value, float):
        raise TypeError(f"`{name}` is a float, which can be rounded: pass an int.")
    if isinstance(value, Mapping):
        return {str(each): plain_value(f"{name}.{each}", item, depth + 1) for each, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain_value(f"{name}[{index}]", item, depth + 1) for index, item in enumerate(value)]
    raise TypeError(f"`{name}` cannot be a {type(value).__name__}.")


def plain_bytes(name: str, value: Any) -> bytes:
    """The bytes of a file. Raises a TypeError for what has none, such as a number or a path."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"`{name}` has to be bytes, as `Path(…).read_bytes()` has them; it is a {type(value).__name__}.")


def query_text(value: Any) -> str:
    """A plain value as a query has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _whole_decimal(name: str, value: decimal.Decimal) -> int:
    # Compared before it is converted: a Decimal of few characters can have a million digits.
    if not value.is_finite() or not _LEAST <= value <= _GREATEST or value != value.to_integral_value():
        raise ValueError(f"`{name}` is no whole number of 64 bits.")
    return int(value)


def _bounded(name: str, value: int) -> int:
    if not _LEAST <= value <= _GREATEST:
        raise ValueError(f"`{name}` is no whole number of 64 bits.")
    # Not the subclass that a caller may have given.
    return value + 0


def _text(name: str, value: Any) -> str:
    if not isinstance(value, datetime.datetime):
        return value.isoformat() if isinstance(value, datetime.date) else str(value)
    if value.tzinfo is None:
        raise ValueError(f"`{name}` is a time without a zone.")
    return value.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
