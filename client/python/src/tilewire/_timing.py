"""What a reply tells beside its result: where the time went."""

from __future__ import annotations

import dataclasses
import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import _core

_STAGES = ("queue_us", "receive_us", "stage_us", "h2d_us", "kernel_us", "d2h_us", "send_us", "other_us")


@dataclasses.dataclass(frozen=True)
class Timing:
    """Where the time of a call went, microseconds; stages that could not be observed are None."""

    queue_us: float | None  #: waiting for its turn
    receive_us: float | None  #: bytes coming in
    stage_us: float | None  #: copying them to where the device takes them
    h2d_us: float | None  #: to the device
    kernel_us: float | None  #: computing
    d2h_us: float | None  #: from the device
    send_us: float | None  #: the result going out
    other_us: float | None  #: in none of these stages: dispatch, parsing, waking threads
    wall_us: float  #: all of it, at the server
    client_us: float  #: all of it, here, retries included
    bytes_in: int  #: array bytes over the wire, to the server
    bytes_out: int  #: and back
    region_bytes_in: int  #: array bytes out of and into shared memory
    region_bytes_out: int
    bytes_copied: int | None  #: array bytes that the server's CPU copied
    blocks: int
    ranges: int
    lanes: int
    streams: int  #: connections that carried it
    device: str  #: such as ``"cuda:0"``
    overlap: float | None  #: sum of the stages over the time that they took together
    bottleneck: str  #: the stage that took longest
    bottleneck_share: float | None  #: of what it can do at most
    round_trip_us: float | None  #: to the client and back, as the server measured it when the connection came
    window_share: float | None  #: of receive_us, that windows and distance explain, 0 to 1: near 1, more connections help
    numeric_version: str  #: such as ``"rmse.1"``
    attempts: int  #: 2 or more when it was retried
    streamed: bool  #: in chunks, not as one message

    @classmethod
    def of(cls, reply: _core.Reply) -> Timing:
        timing = reply.timing
        own = {"client_us", "numeric_version", "attempts", "streamed"}
        known = {field.name: getattr(timing, field.name) for field in dataclasses.fields(cls) if field.name not in own}
        return cls(
            **known,
            client_us=reply.client_wall_us,
            numeric_version=reply.numeric_version,
            attempts=reply.attempts,
            streamed=reply.streamed,
        )

    @classmethod
    def of_call(cls, call: _core.Call | None) -> Timing | None:
        """None where there was none yet, or it failed."""
        reply = call.reply if call is not None else None
        return None if reply is None else cls.of(reply)

    def __str__(self) -> str:
        rows = [f"{self.numeric_version} on {self.device}, {'streamed' if self.streamed else 'one message'}"]
        for name in (*_STAGES, "wall_us", "client_us"):
            value = getattr(self, name)
            if value is not None:
                mark = "  <- bottleneck" if name == f"{self.bottleneck}_us" else ""
                rows.append(f"  {name[:-3]:8} {value / 1e3:10.3f} ms{mark}")
        rows.append(f"  {self.bytes_in} bytes in, {self.bytes_out} bytes out")
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"
