"""What the library raises."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Tuple, Type


class CallState(NamedTuple):
    """How far a call had got when it failed."""

    operation: str
    idempotency_key: Optional[str]
    """The key it was sent with: the same call with this key is safe to make again."""
    attempts: int
    """How often it was sent."""
    is_outcome_unknown: bool
    """Whether something may have been done that nobody knows of yet. If so, make the same call again, with the same
    Idempotency-Key if it takes one. Never send an order under another key then."""


class MarinaError(Exception):
    """Everything that this library raises, but for mistakes in how it is called (TypeError, ValueError)."""


class CallError(MarinaError):
    """A call failed. `call` says how far it had got, and has its Idempotency-Key."""

    call: CallState

    @property
    def idempotency_key(self) -> Optional[str]:
        """The key that the call was sent with; None if the operation takes none."""
        return self.call.idempotency_key

    @property
    def is_outcome_unknown(self) -> bool:
        """Whether something may have been done that nobody knows of yet."""
        return self.call.is_outcome_unknown


class NoAnswerError(CallError):
    """No answer came, or what came was not the gateway's. `__cause__` says why."""

    def __init__(self, message: str, call: CallState) -> None:
        super().__init__(message)
        self.call = call

    def __reduce__(self) -> Tuple[Any, ...]:
        # An error may have to travel from a worker's process to its parent, with its key.
        return type(self), (str(self), self.call)


class CallTimeoutError(NoAnswerError, TimeoutError):
    """No answer came in time. Unless `is_outcome_unknown` is false, the request may have been done: make the same call again
    with the same Idempotency-Key."""


class ErrorDetails(NamedTuple):
    """What the gateway answers about an error."""

    status: int
    type: Optional[str]
    """The family of the code."""
    code: Optional[str]
    """What happened, for programs. None if something before the gateway answered; then go by the status."""
    message: str
    doc_url: Optional[str]
    """Where the code is described."""
    param: Optional[str]
    """The offending parameter, header or field."""
    reject_reason: Optional[str]
    """Why the exchange or the broker refused."""
    location: Optional[str]
    """The path of the object that the request left behind."""
    request_id: Optional[str]
    """Names the answer to support."""
    retry_after_seconds: Optional[int]


class ErrorAnswer(CallError):
    """An error that the gateway answered with. Decide by `code`; there is a class for each family of codes."""

    def __init__(self, details: ErrorDetails, call: CallState) -> None:
        super().__init__(details.message)
        self.call = call
        self._details = details
        self.status = details.status
        self.type = details.type
        self.code = details.code
        self.message = details.message
        self.doc_url = details.doc_url
        self.param = details.param
        self.reject_reason = details.reject_reason
        self.location = details.location
        self.request_id = details.request_id
        self.retry_after_seconds = details.retry_after_seconds

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self._details, self.call)


class AuthenticationError(ErrorAnswer):
    """The key is not good here."""


class PermissionDeniedError(ErrorAnswer):
    """The key may not do this."""


class InvalidRequestError(ErrorAnswer):
    """The request has to change."""


class IdempotencyError(ErrorAnswer):
    """The Idempotency-Key belongs to another request."""


class OrderError(ErrorAnswer):
    """An order was not taken, or not cancelled."""


class ApplicationError(ErrorAnswer):
    """An application or a document was not taken."""


class WalletError(ErrorAnswer):
    """An allocation or a withdrawal was not made."""


class LimitError(ErrorAnswer):
    """A limit of the partner's is reached, and waiting a moment does not help."""


class RateLimitError(ErrorAnswer):
    """Too many requests. Nothing was done."""


class ApiError(ErrorAnswer):
    """The gateway or what is behind it is not able to do this now."""


_CLASSES: Dict[str, Type[ErrorAnswer]] = {
    "authentication_error": AuthenticationError,
    "permission_error": PermissionDeniedError,
    "invalid_request_error": InvalidRequestError,
    "idempotency_error": IdempotencyError,
    "order_error": OrderError,
    "application_error": ApplicationError,
    "wallet_error": WalletError,
    "limit_error": LimitError,
    "rate_limit_error": RateLimitError,
    "api_error": ApiError,
}


def error_answer(details: ErrorDetails, call: CallState) -> ErrorAnswer:
    """Makes the error of its family. A family that is not known is an `ErrorAnswer`."""
    return _CLASSES.get(details.type or "", ErrorAnswer)(details, call)
