"""What a failed call raises."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """A call that failed.

    Attributes, each text, empty where it does not apply:
        code: the canonical status, such as ``"INVALID_ARGUMENT"``.
        reason: why, for programs, such as ``"LIMIT"``.
        field, value, allowed: what was wrong, what it was, and what it may be.
    """

    code = "UNKNOWN"

    def __init__(
        self, message: str, *, code: str = "", reason: str = "", field: str = "", value: str = "", allowed: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code or type(self).code
        self.reason = reason
        self.field = field
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:  # KeyError's own would quote it
        return f"{self.code}: {self.args[0]}"

    def __reduce__(self) -> tuple[Any, ...]:
        details = {name: getattr(self, name) for name in ("code", "reason", "field", "value", "allowed")}
        return _again, (type(self), self.args[0], details)


def _again(kind: type[Error], message: str, details: dict[str, str]) -> Error:
    return kind(message, **details)


class InvalidArgument(Error, ValueError):
    """What was asked for is wrong, whatever the server's state: a shape, an axis, a value."""

    code = "INVALID_ARGUMENT"


class UnsupportedType(Error, TypeError):
    """An argument of the wrong type, such as an operand that has no dtype here. Nothing was sent."""

    code = "INVALID_ARGUMENT"


class NotFound(Error, KeyError):
    """The server has no such array or region of this caller."""

    code = "NOT_FOUND"


class DeadlineExceeded(Error, TimeoutError):
    """The timeout of the call passed, or the server gave up on a stream that stood still."""

    code = "DEADLINE_EXCEEDED"


class Unavailable(Error, ConnectionError):
    """The server cannot be reached, is ending, or the connection broke."""

    code = "UNAVAILABLE"


class PermissionDenied(Error, PermissionError):
    """The caller may not do this."""

    code = "PERMISSION_DENIED"


class Unauthenticated(PermissionDenied):
    """The server does not believe who the caller says it is."""

    code = "UNAUTHENTICATED"


class Exhausted(Error):
    """More than the server is configured for (``reason`` ``LIMIT``), or it stayed busy however often it was asked (``BUSY``)."""

    code = "RESOURCE_EXHAUSTED"


class FailedPrecondition(Error, RuntimeError):
    """Not in this state: the client is closed, a region's memory is gone."""

    code = "FAILED_PRECONDITION"


class Forked(FailedPrecondition):
    """This process was forked from one that had called a server: gRPC does not survive that."""


class Unimplemented(Error, NotImplementedError):
    """The server does not do this, or does not allow it."""

    code = "UNIMPLEMENTED"


class Cancelled(Error):
    """The call was cancelled."""

    code = "CANCELLED"


class Internal(Error, RuntimeError):
    """Server or client are at fault, or bytes were damaged on their way (``DATA_LOSS``)."""

    code = "INTERNAL"


_KINDS: dict[str, type[Error]] = {
    "CANCELLED": Cancelled,
    "INVALID_ARGUMENT": InvalidArgument,
    "DEADLINE_EXCEEDED": DeadlineExceeded,
    "NOT_FOUND": NotFound,
    "PERMISSION_DENIED": PermissionDenied,
    "RESOURCE_EXHAUSTED": Exhausted,
    "FAILED_PRECONDITION": FailedPrecondition,
    "OUT_OF_RANGE": InvalidArgument,
    "UNIMPLEMENTED": Unimplemented,
    "INTERNAL": Internal,
    "DATA_LOSS": Internal,
    "UNAVAILABLE": Unavailable,
    "UNAUTHENTICATED": Unauthenticated,
}


def from_status(code: str, reason: str, message: str, field: str, value: str, allowed: str) -> Error:
    """The exception for a status of the C++ client, which calls this."""
    kind = Forked if reason == "FORKED" else _KINDS.get(code, Error)
    return kind(message, code=code, reason=reason, field=field, value=value, allowed=allowed)


def invalid(field: str, value: object, allowed: str) -> InvalidArgument:
    """As the C++ client words it."""
    return InvalidArgument(
        f"{field} is {value}; allowed: {allowed}", reason="BAD_VALUE", field=field, value=str(value), allowed=allowed
    )


def unsupported(field: str, value: str, allowed: str) -> UnsupportedType:
    return UnsupportedType(
        f"{field} is {value}; allowed: {allowed}", reason="BAD_VALUE", field=field, value=value, allowed=allowed
    )


def closed(what: str) -> FailedPrecondition:
    return FailedPrecondition(f"this {what} is closed", reason="CLOSED")
