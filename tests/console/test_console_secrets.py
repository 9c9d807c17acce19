"""No secret in any page: keys, headers and variables are planted, and every answer is searched."""

import pytest
from api_serving import said
from console_world import CONSOLE, sign_in
from test_console_hostile import crawl
from test_console_requests import CHAT, MESSAGES, GatewayWorld, ask

from refold.settings import Settings, UpstreamSettings
from refold.settings.serve import Serve
from refold.view.profiles import PROFILES

HEADERS = (
    "api-key",
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-api-key",
    "x-amz-security-token",
    "x-goog-api-key",
    "x-secret-of-a-client",
)
VARIABLES = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "UP_KEY")


def planted(name):
    return f"sk-planted-{name.lower().replace('_', '-')}-0123456789"


class Listening:
    """A browser that keeps everything it was sent."""

    def __init__(self, browser):
        self.browser, self.answers = browser, {}

    async def get(self, where, **how):
        answer = await self.browser.get(where, **how)
        heads = "".join(f"{name}: {value}\n" for name, value in answer.headers.multi_items())
        self.answers[where] = heads.encode() + answer.content
        return answer


@pytest.mark.parametrize("key_needed", [False, True])
async def test_no_answer_of_the_console_has_a_secret(key_needed, monkeypatch):
    for name in VARIABLES:
        monkeypatch.setenv(name, planted(name))
    world = GatewayWorld()
    upstream = UpstreamSettings(name="up", base_url="http://up/v1", key="UP_KEY")
    world.state.settings = Settings(
        PROFILES["balanced"], {}, {}, serve=Serve(upstreams=(upstream,))
    )
    async with world.state:
        headers = {name: planted(name) for name in HEADERS}
        headers["authorization"] = f"Bearer {headers['authorization']}"
        for path, more in ((CHAT, {}), (MESSAGES, {"max_tokens": 9})):
            body = {"model": "m", "messages": [said("user", "Where is the parcel?")], **more}
            await ask(world, path, body, **headers)
        secrets = {planted(name) for name in (*HEADERS, *VARIABLES)}
        if key_needed:
            secret = await world.key("default", "read", "write", "admin")
            browser = world.browser()
            await sign_in(browser, secret)
            secrets |= {secret, secret.rpartition("_")[2]}
        else:
            browser = await world.opened()
        secrets |= set(browser.cookies.values())
        listening = Listening(browser)
        await crawl(listening)
        await listening.get(f"{CONSOLE}/no-such-page")
        await listening.get(f"{CONSOLE}/sign-in")
        assert len(listening.answers) > 20
        assert any(b"parcel" in each for each in listening.answers.values())
        for where, content in listening.answers.items():
            found = [each for each in secrets if each.encode() in content]
            assert found == [], where
