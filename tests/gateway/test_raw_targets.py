"""Request targets as an attacker writes them: none leads to another host than the upstream's."""

# ruff: noqa: F811, F401 - fixtures are imported

import asyncio
import json
import random
from collections import Counter

import pytest
from amounts import seed_of, set_amount
from raw_targets import targets
from serve_processes import raw_server, refold_serve, store_address

CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
COUNT = set_amount("REFOLD_TARGETS", few=400, quick=400, ci=400, nightly=4_000, thorough=20_000)
AT_ONCE = 16
METHODS = ["GET", "GET", "GET", "POST", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"]


async def test_no_target_reaches_another_host(store_address, tmp_path):
    """The fixed attacks, then a seeded part of the generated ones; `make target-fuzz`: all."""
    async with (
        raw_server() as upstream,
        raw_server() as other,
        # No path: what a target adds directly follows the authority.
        refold_serve(
            tmp_path,
            store_address,
            [
                {"name": "bare", "base_url": upstream.address},
                {"name": "codex", "base_url": f"{upstream.address}/backend-api/codex"},
            ],
        ) as serving,
    ):
        seeded = random.Random(seed_of("targets"))  # noqa: S311 - repeatable, not secret
        parsed_request = [*fixed(other.port), *targets(seeded, COUNT, upstream.port, other.port)]
        waiting = iter([(seeded.choice(METHODS), one) for one in parsed_request])
        statuses, faults = Counter(), []

        async def ask():
            for method, target in waiting:
                body = CHAT if method in {"POST", "PUT", "PATCH"} else b""
                lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{serving.port}"]
                lines += ["Connection: close", f"Content-Length: {len(body)}", "", ""]
                raw = await serving.raw("\r\n".join(lines).encode("latin-1") + body)
                status = int(raw.split(b" ", 2)[1]) if raw else 0
                statuses[status] += 1
                if status >= 500:
                    faults.append((method, target, raw[-300:]))

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(ask())
        figures = {"targets": len(parsed_request), "statuses": dict(sorted(statuses.items()))}
        figures |= {"upstream": len(upstream.got), "other": other.connections, "5xx": len(faults)}
        print(json.dumps(figures))  # noqa: T201 - `make target-fuzz` shows it
        assert [(one.line, one.values("host")) for one in other.got] == []
        assert (other.connections, faults[:20]) == (0, [])
        assert statuses[200] > 0
        prefixes = ("/v1/", "/backend-api/codex/")
        assert [one.target for one in upstream.got if not one.target.startswith(prefixes)] == []


def fixed(port):
    return [
        f"%2Fv1%2F@127.0.0.1:{port}/latest/meta-data",
        f"%2fv1/@127.0.0.1:{port}/",
        f"%2Fv1/.evil@127.0.0.1:{port}/x",
        f"%2Fv1/:{port}/",
        "%2Fv1%2Fchat%2Fcompletions",
        "%2Fv1%2Fmodels",
        "/v1%2Fchat%2Fcompletions",
        "/%76%31/models",
        f"http://127.0.0.1:{port}/v1/models",
        f"//127.0.0.1:{port}/v1/models",
        f"/v1/@127.0.0.1:{port}/",
        f"@127.0.0.1:{port}/v1/models",
        f"127.0.0.1:{port}",
        "*",
        "/v1/models#@127.0.0.1/",
        "/v1/%",
        "/v1/[",
        "/v1/" + "a" * 60_000,
    ]


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_path_with_an_encoded_leading_slash_is_not_found(method, tmp_path):
    async with raw_server() as upstream, raw_server() as other:
        named = {"name": "bare", "base_url": upstream.address}
        async with refold_serve(tmp_path, f"sqlite:///{tmp_path}/s.db", [named]) as serving:
            for target in (f"%2Fv1%2F@127.0.0.1:{other.port}/x", "%2Fv1%2Fchat%2Fcompletions"):
                answer = await serving.ask(target, method=method, body=CHAT)
                assert answer.status in {404, 422}, answer
                assert json.loads(answer.body)
        assert (upstream.got, other.connections) == ([], 0)


async def test_an_address_that_is_none_is_refused_and_says_why(tmp_path):
    async with raw_server() as upstream:
        named = {"name": "bare", "base_url": upstream.address}
        async with refold_serve(tmp_path, f"sqlite:///{tmp_path}/s.db", [named]) as serving:
            for target in ("/v1/models#a", "/v1/models?a#b", "/v1/a/../b", "/v1/" + "a" * 50_000):
                answer = await serving.ask(target)
                assert (answer.status, upstream.got) == (422, []), target
                assert json.loads(answer.body)["error"]["code"] == "invalid-input"
            for host in ("[", "[::1", "a b", "@", "http://x"):
                assert (await serving.ask("/v1/nothing", host=host)).status < 500, host
