"""Marina's API: types, retries that keep the Idempotency-Key, lists, events and webhooks."""

from . import contract
from .async_client import AsyncMarina
from .async_pages import AsyncEventFeed, AsyncPages
from .client import Marina
from .errors import (
    ApiError,
    ApplicationError,
    AuthenticationError,
    CallError,
    CallState,
    CallTimeoutError,
    ErrorAnswer,
    IdempotencyError,
    InvalidRequestError,
    LimitError,
    MarinaError,
    NoAnswerError,
    OrderError,
    PermissionDeniedError,
    RateLimitError,
    WalletError,
)
from .joined_path import JoinedPath
from .pages import EventFeed, Pages
from .settings import AnswerDetails
from .webhooks import WebhookVerificationError, sign_webhook, verify_webhook

__path__ = JoinedPath(__name__, __path__)

__all__ = [
    "AnswerDetails",
    "ApiError",
    "ApplicationError",
    "AsyncEventFeed",
    "AsyncMarina",
    "AsyncPages",
    "AuthenticationError",
    "CallError",
    "CallState",
    "CallTimeoutError",
    "ErrorAnswer",
    "EventFeed",
    "IdempotencyError",
    "InvalidRequestError",
    "LimitError",
    "Marina",
    "MarinaError",
    "NoAnswerError",
    "OrderError",
    "Pages",
    "PermissionDeniedError",
    "RateLimitError",
    "WalletError",
    "WebhookVerificationError",
    "contract",
    "sign_webhook",
    "verify_webhook",
]
