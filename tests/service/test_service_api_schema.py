"""The API keeps to its OpenAPI document, whatever is asked: made and malformed requests alike."""

import asyncio
import json

import http_reference
import pytest
import requests
import schemathesis
from amounts import amount
from api_serving import serving, talked
from hypothesis import given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from refold.service.api.router import ERRORS

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = amount(few=1, quick=2, ci=5, nightly=50, thorough=200)
ERASING = {"forget_session", "follow_session"}
"""Not tried on what is there: one takes it away, and one never ends."""


class Running:
    """A service with something in it, in a loop of its own."""

    def __init__(self):
        self._runner = asyncio.Runner()
        self._serving = serving()

    def __enter__(self):
        self.run = self._runner.__enter__().run
        self.service = self.run(self._serving.__aenter__())
        self.ids = self.run(self._begin())
        return self

    def __exit__(self, *error):
        self.run(self._serving.__aexit__(*error))
        self._runner.__exit__(*error)

    async def _begin(self):
        facts = await talked(self.service, "acme", "talk")
        self.secret = await self.service.key("acme")
        return {"session": "talk", "seq": facts.seq, "fold": facts.fold, "hash": facts.hash}

    def ask(self, case):
        """What is answered."""
        made = case.as_transport_kwargs(base_url="http://api.example")
        made.pop("cookies", None)
        made = requests.Request(**made).prepare()
        return self.run(self._asked(made))

    async def _asked(self, made):
        async with self.service.client(raise_app_exceptions=False) as client:
            headers = {**made.headers, "Authorization": f"Bearer {self.secret}"}
            return await client.request(made.method, made.url, content=made.body, headers=headers)


@pytest.fixture(scope="module")
def running():
    with Running() as one:
        yield one


def names():
    """The routes, by name."""
    document = http_reference.document()
    return [one["operationId"] for path in document["paths"].values() for one in path.values()]


@pytest.mark.parametrize("name", names())
def test_a_route_keeps_to_its_document(running, name):
    schema = schemathesis.openapi.from_dict(running.service.app.openapi())
    operation = schema.find_operation_by_id(name)
    made = operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE)
    wrong = operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)
    real = st.booleans() if name not in ERASING else st.just(value=False)

    @settings(max_examples=EXAMPLES)
    @given(st.one_of(made, wrong), real)
    def holds(case, there):
        for key, value in running.ids.items() if there else ():
            if key in (case.path_parameters or {}):
                case.path_parameters[key] = value
        answer = running.ask(case)
        case.validate_response(answer, checks=CHECKS)

    holds()


def test_every_route_declares_what_can_go_wrong_as_problems():
    for path in http_reference.document()["paths"].values():
        for told in path.values():
            assert told["summary"]
            assert told["tags"]
            assert told["security"] == [{"key": []}]
            for status in ERRORS:
                (kind,) = told["responses"][str(status)]["content"]
                assert kind == "application/problem+json"


def test_the_reference_is_made_from_the_document():
    assert http_reference.PAGE.read_text(encoding="utf-8") == http_reference.render()


def test_the_document_is_served(running):
    async def served():
        async with running.service.client() as client:
            return await client.get("/api/v1/openapi.json")

    answer = running.run(served())
    assert json.loads(answer.content)["paths"].keys() == http_reference.document()["paths"].keys()
