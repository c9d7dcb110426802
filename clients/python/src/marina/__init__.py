"""Marina's API: types, retries that keep the Idempotency-Key, lists, events and webhooks."""

from . import contract
from .client import AnswerDetails, Marina
from .errors import (
    ApiError,
    ApplicationError,
    AuthenticationError,
    CallState,
    ErrorAnswer,
    IdempotencyError,
    InvalidRequestError,
    LimitError,
    MarinaError,
    NoAnswerError,
    OrderError,
    PermissionError,
    RateLimitError,
    WalletError,
)
from .pages import EventFeed, Pages
from .webhooks import WebhookVerificationError, sign_webhook, verify_webhook

__all__ = [
    "AnswerDetails",
    "ApiError",
    "ApplicationError",
    "AuthenticationError",
    "CallState",
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
    "PermissionError",
    "RateLimitError",
    "WalletError",
    "WebhookVerificationError",
    "contract",
    "sign_webhook",
    "verify_webhook",
]
