"""What the service does not do for who asks, or not now."""

from refold.errors.root import RefoldError


class ServiceError(RefoldError):
    """What the service does not do for who asks, or not now."""

    code = "service"


class KeyNeeded(ServiceError):
    """No key came with the request, or none that is valid."""

    code = "key-needed"
    usual_fix = (
        "Send a key of this service as `Authorization: Bearer rfk_…`, or as `Refold-Key` beside "
        "the provider's own; `refold keys create` makes one."
    )


class RoleNeeded(ServiceError):
    """The key is valid, but its roles do not include this."""

    code = "role-needed"
    usual_fix = "Use a key with that role; `refold keys create --role NAME` makes one."


class SessionOwned(ServiceError):
    """The session belongs to the key that began it, or to which it was handed over."""

    code = "session-owned"
    usual_fix = (
        "Name another session in `Refold-Session`, or have an administrator hand this one over: "
        "`refold keys hand-over SESSION ID`."
    )


class ApiKeyNotFound(ServiceError):
    """No key of that id, or of that upstream."""

    code = "key-not-found"
    usual_fix = "List the keys: `refold keys list`."


class LimitReached(ServiceError):
    """Too much at once, or in a minute; `retry_after` says in how many seconds to ask again."""

    code = "limit-reached"
    usual_fix = "Ask again later: `Retry-After` says in how many seconds."

    def __init__(self, what: str, retry_after: float, fix: str | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(what, fix)


class QuotaUsedUp(LimitReached):
    """Too much in a day."""

    code = "quota-used-up"
    usual_fix = "Ask again tomorrow (UTC), or have the quota raised."


class RequestTooLarge(ServiceError):
    """The body is larger than the service takes."""

    code = "request-too-large"
    usual_fix = "Send less, or have `serve.sizes` raised."


class HeadersTooLarge(ServiceError):
    """What comes before the body is larger than the service takes."""

    code = "headers-too-large"
    usual_fix = "Send fewer or shorter headers, or have `serve.sizes.headers` raised."


class RequestTooSlow(ServiceError):
    """The body did not come in time."""

    code = "request-too-slow"
    usual_fix = "Send it again, over a better line."


class RequestTooDeep(ServiceError):
    """The body nests deeper than anything that is meant seriously."""

    code = "request-too-deep"
    usual_fix = "Send it with less nesting."


class UnsupportedEncoding(ServiceError):
    """The body is compressed in a way that the service does not read."""

    code = "unsupported-encoding"
    usual_fix = "Send it as it is, or with one Content-Encoding: zstd, gzip or deflate."


class InvalidEncoding(ServiceError):
    """The body is not compressed as its Content-Encoding says."""

    code = "invalid-encoding"
    usual_fix = "Check how the client compresses it, or send it as it is."


class InvalidFraming(ServiceError):
    """The headers disagree on where the body ends."""

    code = "invalid-framing"
    usual_fix = "Send either Content-Length or Transfer-Encoding, over HTTP/1.1."


class NoWebSockets(ServiceError):
    """The client asked to go on with a WebSocket."""

    code = "no-websockets"
    usual_fix = "Send the request as a POST over HTTP; answers can be streamed."


class Draining(ServiceError):
    """The service is about to stop."""

    code = "draining"
    usual_fix = "Ask again in a moment: another process answers then."


class OffloadLost(ServiceError):
    """The process that answers large requests ended, or could not be started."""

    code = "offload-lost"
    usual_fix = "Send the request again: the process is started again by itself."


class UpstreamUnreachable(ServiceError):
    """The server that has the model does not answer, or broke off."""

    code = "upstream-unreachable"
    usual_fix = "Ask again; if it stays so, who runs the service looks at `serve.upstreams`."


class NotPassedOn(ServiceError):
    """The upstream's key is not the client's own, and this is no answer of a model."""

    code = "not-passed-on"
    usual_fix = (
        "Use a key of your own for it; or who runs the service names it under `paths` of the "
        "upstream in `serve.upstreams`."
    )


class NotLocal(ServiceError):
    """Without keys, only programs of this machine are answered, and no web page."""

    code = "not-local"
    usual_fix = "Make a key with `refold keys create`, and send it along."


class MasterKeyWrong(ServiceError):
    """REFOLD_MASTER_KEY is missing, is none, or is not the one that was used."""

    code = "master-key"
    usual_fix = (
        "Set REFOLD_MASTER_KEY to the one that they were kept under; `refold keys master-key` "
        "makes a new one, for a service that keeps none yet."
    )
