"""Array kernels of a Tilewire server, called with numpy arrays.

    import numpy as np, tilewire as tw
    with tw.local() as c:                       # or tw.connect("server:50051")
        a, b = np.random.rand(2, 1000, 1000).astype("f4")
        print(c.rmse(a, b), c.transpose(a).shape, c.timing)

Asynchronous calls: `tilewire.aio`. Several servers: `tilewire.dask`.
"""

from ._client import Client, connect
from ._compare import Comparison
from ._core import version as __version__
from ._device import Registration
from ._errors import (
    Cancelled,
    DeadlineExceeded,
    Error,
    Exhausted,
    FailedPrecondition,
    Forked,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
    Unimplemented,
    UnsupportedType,
)
from ._local import LocalClient, local
from ._options import CallOptions
from ._remote import RemoteArray
from ._security import Tls
from ._timing import Timing
from ._trace import Trace, TracedCall

__all__ = [
    "CallOptions",
    "Cancelled",
    "Client",
    "Comparison",
    "DeadlineExceeded",
    "Error",
    "Exhausted",
    "FailedPrecondition",
    "Forked",
    "Internal",
    "InvalidArgument",
    "LocalClient",
    "NotFound",
    "PermissionDenied",
    "Registration",
    "RemoteArray",
    "Timing",
    "Tls",
    "Trace",
    "TracedCall",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "UnsupportedType",
    "__version__",
    "connect",
    "local",
]
