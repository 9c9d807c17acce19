"""Routes and raw connections for tests of the service."""

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from refold.errors import SessionNotFound, StoreBusy
from refold.service.callers import caller_of, gateway_caller

SECRETIVE = f"rfk_{'a' * 12}_{'B' * 43}"


async def who(request):
    caller = await caller_of(request)
    return JSONResponse({"tenant": caller.tenant, "key": caller.key})


async def modelled(request):
    await gateway_caller(request)
    return Response(str(len(await request.body())))


async def failing(_):
    raise RuntimeError(f"postgresql://me:hunter2hunter2@db and {SECRETIVE}")


async def unknown(_):
    raise SessionNotFound("There is no session 'x'.")


async def busy(_):
    raise StoreBusy("The file /srv/me/refold.db is busy.")


ROUTES = (
    Route("/who", who, methods=["GET", "POST"]),
    Route("/modelled", modelled, methods=["POST"]),
    Route("/failing", failing),
    Route("/unknown", unknown),
    Route("/busy", busy),
)


def head(path, *lines):
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()
