"""A service with tenants, before one upstream that an attacker may have."""

import json
from types import SimpleNamespace

import httpx2
from gateway_world import served
from serving import running, service_with

HI = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


class Upstreamed:
    """A server that keeps what it got, and answers as it is told."""

    def __init__(self):
        self.got = []
        self.status, self.headers, self.pieces = 200, [], [completion()]

    async def __call__(self, scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.got.append(
            SimpleNamespace(
                method=scope["method"],
                path=scope["raw_path"].decode(),
                query=scope["query_string"].decode(),
                headers={name.decode(): value.decode() for name, value in scope["headers"]},
                body=body,
            )
        )
        kind = [] if any(n == b"content-type" for n, _ in self.headers) else [JSON]
        start = {"status": self.status, "headers": [*kind, *self.headers]}
        await send({"type": "http.response.start", **start})
        for piece in self.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


JSON = (b"content-type", b"application/json")
EVENTS = (b"content-type", b"text/event-stream")


def completion(text="hello", **usage):
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    told = {"usage": usage} if usage else {}
    return json.dumps(
        {"id": "x", "object": "chat.completion", "choices": [choice], **told}
    ).encode()


class Town:
    """A service with tenants, before one upstream."""

    def __init__(self, service, address, upstream):
        self.service, self.address, self.upstream = service, address, upstream
        self.clients = []

    async def client(self, tenant="acme", *roles, **headers):
        made = await self.service.keyring.create(tenant, roles or ["use"])
        headers = headers or {"Authorization": f"Bearer {made.secret}"}
        client = httpx2.AsyncClient(base_url=self.address, headers=headers, timeout=30)
        client.key = made
        self.clients.append(client)
        return client


class town:  # noqa: N801 - used like a function
    def __init__(self, key="stored", paths=(), store=None, **serve):
        self.options = {"key": key, "paths": paths}
        self.store, self.serve = store, serve

    async def __aenter__(self):
        upstream = Upstreamed()
        self.there = served(upstream)
        base = await self.there.__aenter__()
        one = {"name": "up", "base_url": f"{base}/v1", **self.options}
        service = service_with(self.store, local=False, upstreams=[one], **self.serve)
        self.here = running(service)
        self.town = Town(service, await self.here.__aenter__(), upstream)
        for tenant in ("acme", "beta"):
            await service.vault.put(tenant, "up", f"sk-of-{tenant}-{'k' * 20}")
        return self.town

    async def __aexit__(self, *error):
        for client in self.town.clients:
            await client.aclose()
        await self.here.__aexit__(*error)
        await self.there.__aexit__(*error)
