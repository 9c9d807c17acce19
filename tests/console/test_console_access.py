"""Who gets into the console, and what another site may do with the browser of who did."""

import asyncio
import re

import pytest
from api_serving import talked
from console_world import CONSOLE, LOCAL, TEAM, console, cookie, events_of, form_token, sign_in

from refold.console.access import MAX_AGE
from refold.console.app import open_address
from refold.service.keys import TENANT

EVIL = "http://evil.example"


async def test_a_key_opens_the_console_and_the_browser_gets_no_key():
    async with console() as world:
        secret, browser = await world.key("acme", "read"), world.browser()
        await talked(world, "acme", "support-42")
        answer = await sign_in(browser, secret, then=f"{CONSOLE}?q=parcel")
        assert (answer.status_code, answer.headers["location"]) == (303, f"{CONSOLE}?q=parcel")
        given = cookie(answer)
        assert {"httponly", "samesite=strict", "path=/console", "secure"} <= given.flags
        assert secret not in str(answer.headers) + answer.text
        page = await browser.get(CONSOLE)
        assert page.status_code == 200
        assert "support-42" in page.text
        assert secret not in page.text
        assert given.value not in page.text


async def test_without_tls_the_cookie_works_too():
    async with console() as world:
        browser = world.browser("http://refold.internal:8790")
        answer = await sign_in(
            browser, await world.key("acme", "read"), origin="http://refold.internal:8790"
        )
        assert "secure" not in cookie(answer).flags
        assert cookie(answer).name == "refold-console-8790"  # other ports have their own
        assert (await browser.get(CONSOLE)).status_code == 200


@pytest.mark.parametrize("secret", ["", "rfk_", f"rfk_{'a' * 12}_{'B' * 43}", "é" * 40, "\x00"])
async def test_a_wrong_key_opens_nothing(secret):
    async with console() as world:
        await world.key("acme", "read")
        answer = await sign_in(world.browser(), secret)
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
        assert "not valid" in answer.text


async def test_whoever_has_not_signed_in_is_led_to_where_that_is_done():
    async with console() as world:
        browser = world.browser()
        answer = await browser.get(f"{CONSOLE}/sessions/a%2Fb?at=3")
        assert answer.status_code == 303
        where = "/console/sign-in?next=%2Fconsole%2Fsessions%2Fa%252Fb%3Fat%3D3"
        assert answer.headers["location"] == where
        page = await browser.get(where)
        assert 'value="/console/sessions/a%2Fb?at=3"' in page.text
        part = await browser.get(CONSOLE, headers={"HX-Request": "true"})
        assert part.headers["hx-redirect"].startswith("/console/sign-in")
        assert part.text == ""


@pytest.mark.parametrize(
    "where",
    [
        "https://evil.example/console",
        "//evil.example/console",
        "/\\evil.example/console",
        "/console\\..\\..",
        "javascript:alert(1)",
        "/consoles",
        "/console/\r\nSet-Cookie: a=b",
        "/console/" + "a" * 3_000,
        "",
    ],
)
async def test_signing_in_leads_into_the_console_only(where):
    async with console() as world:
        answer = await sign_in(world.browser(), await world.key("acme", "read"), then=where)
        assert answer.headers["location"] == CONSOLE


@pytest.mark.parametrize("origin", [EVIL, "null", "", "https://refold.example.evil", "http://["])
async def test_a_form_of_another_site_signs_nobody_in(origin):
    async with console() as world:
        answer = await sign_in(world.browser(), await world.key("acme", "read"), origin=origin)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("origin", "token"),
    [(EVIL, "right"), (TEAM, "wrong"), (TEAM, ""), ("null", "right"), (TEAM, "é")],
)
async def test_a_forged_form_signs_nobody_out(origin, token):
    async with console() as world:
        browser = await world.signed_in()
        right = form_token(await browser.get(CONSOLE))
        data = {"form_token": {"right": right}.get(token, token)}
        answer = await browser.post(f"{CONSOLE}/sign-out", data=data, headers={"origin": origin})
        assert answer.status_code == 403
        assert (await browser.get(CONSOLE)).status_code == 200


async def test_the_form_token_of_another_session_is_none():
    async with console() as world:
        mine, other = await world.signed_in(), await world.signed_in()
        data = {"form_token": form_token(await other.get(CONSOLE))}
        answer = await mine.post(f"{CONSOLE}/sign-out", data=data, headers={"origin": TEAM})
        assert answer.status_code == 403


async def test_signing_out_ends_the_session_on_the_server():
    async with console() as world:
        browser = await world.signed_in()
        before = dict(browser.cookies)
        data = {"form_token": form_token(await browser.get(CONSOLE))}
        answer = await browser.post(f"{CONSOLE}/sign-out", data=data, headers={"origin": TEAM})
        assert answer.headers["location"] == "/console/sign-in"
        assert dict(browser.cookies) == {}
        again = world.browser()
        again.cookies.update(before)
        assert (await again.get(CONSOLE)).status_code == 303


async def test_a_session_ends_with_its_key_and_with_its_time():
    now = [0.0]
    async with console(clock=lambda: now[0]) as world:
        made = await world.state.keyring.create("acme", ["read"])
        browser, other = world.browser(), await world.signed_in()
        await sign_in(browser, made.secret)
        assert (await browser.get(CONSOLE)).status_code == 200
        await world.state.keyring.revoke(made.key.id)
        assert (await browser.get(CONSOLE)).status_code == 303
        assert (await other.get(CONSOLE)).status_code == 200
        now[0] = MAX_AGE
        assert (await other.get(CONSOLE)).status_code == 303


async def test_a_session_ends_with_the_secret_that_it_began_with():
    async with console() as world:
        made = await world.state.keyring.create("acme", ["read"])
        browser, newer = world.browser(), world.browser()
        await sign_in(browser, made.secret)
        rotated = await world.state.keyring.rotate(made.key.id, overlap=0)
        assert (await browser.get(CONSOLE)).status_code == 303
        await sign_in(newer, rotated.secret)
        assert (await newer.get(CONSOLE)).status_code == 200


async def test_a_key_that_may_not_read_sees_nothing():
    async with console() as world:
        await talked(world, "acme", "support-42")
        browser = await world.signed_in("acme", "use")
        answer = await browser.get(CONSOLE)
        assert answer.status_code == 403
        assert "support-42" not in answer.text
        assert "read" in answer.text


async def test_a_guessed_cookie_is_no_session():
    async with console() as world:
        browser = world.browser()
        browser.cookies.set("refold-console-0", "a" * 43)
        assert (await browser.get(CONSOLE)).status_code == 303


# On this machine, without keys.


async def test_the_opened_address_works_once():
    async with console(local=True) as world:
        address, browser = open_address(LOCAL, world.access.new_token()), world.browser(LOCAL)
        answer = await browser.get(address)
        assert (answer.status_code, answer.headers["location"]) == (303, CONSOLE)
        assert {"httponly", "samesite=strict", "path=/console"} <= cookie(answer).flags
        assert world.tokens_used == 1
        assert (await browser.get(CONSOLE)).status_code == 200
        # The browser that used it may open it again, another one may not.
        assert (await browser.get(address)).headers["location"] == CONSOLE
        again = await world.browser(LOCAL).get(address)
        assert again.status_code == 401
        assert "works once" in again.text
        assert world.tokens_used == 1


async def test_the_opened_address_leads_to_a_session():
    async with console(local=True) as world:
        await talked(world, "default", "a/b")
        then = "/console/sessions/a%2Fb"
        answer = await world.browser(LOCAL).get(open_address(LOCAL, world.access.new_token(), then))
        assert answer.headers["location"] == then


async def test_without_the_token_this_machine_sees_nothing_either():
    async with console(local=True) as world:
        await talked(world, "default", "support-42")
        browser = world.browser(LOCAL)
        assert (await browser.get(CONSOLE)).status_code == 303
        page = await browser.get(f"{CONSOLE}/sign-in")
        assert "printed" in page.text
        assert 'type="password"' not in page.text
        for token in ("", "a" * 43, "é"):
            assert (await browser.get(open_address(LOCAL, token))).status_code == 401


@pytest.mark.parametrize("path", [CONSOLE, f"{CONSOLE}/sign-in", f"{CONSOLE}/assets/console.js"])
@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:8790"},
        {"host": "127.0.0.1.evil.example"},
        {"origin": EVIL},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"x-forwarded-for": "10.0.0.1"},
    ],
)
async def test_a_name_that_points_here_opens_nothing(path, headers):
    """DNS rebinding: the page's own name has the address of this machine."""
    async with console(local=True) as world:
        browser = await world.opened()
        assert (await browser.get(CONSOLE)).status_code == 200
        assert (await browser.get(path, headers=headers)).status_code == 403


async def test_a_rebound_name_cannot_use_a_token():
    async with console(local=True) as world:
        address = open_address("http://evil.example:8790", world.access.new_token())
        assert (await world.browser("http://evil.example:8790").get(address)).status_code == 403
        assert world.tokens_used == 0


async def test_once_there_are_keys_a_token_opens_nothing_anymore():
    async with console(local=True) as world:
        browser, unused = await world.opened(), world.access.new_token()
        await world.key("default", "read")
        assert (await browser.get(CONSOLE)).status_code == 303
        answer = await world.browser(LOCAL).get(open_address(LOCAL, unused))
        assert answer.status_code == 401
        assert 'type="password"' in answer.text


async def test_old_tokens_are_dropped_and_new_ones_work():
    async with console(local=True) as world:
        first, *_, last = [world.access.new_token() for _ in range(40)]
        assert (await world.browser(LOCAL).get(open_address(LOCAL, first))).status_code == 401
        assert (await world.browser(LOCAL).get(open_address(LOCAL, last))).status_code == 303


# Several processes that serve one store.


async def test_every_process_that_serves_the_store_knows_who_signed_in():
    now = [1_000_000.0]
    async with (
        console(clock=lambda: now[0]) as one,
        console(store=one.store, clock=lambda: now[0]) as other,
    ):
        browser = one.browser()
        await sign_in(browser, await one.key("acme", "read"))
        there = other.browser()
        there.cookies.update(browser.cookies)
        assert (await there.get(CONSOLE)).status_code == 200
        data = {"form_token": form_token(await there.get(CONSOLE))}
        await there.post(f"{CONSOLE}/sign-out", data=data, headers={"origin": TEAM})
        now[0] += 1.5  # what others did is seen within a second
        assert (await browser.get(CONSOLE)).status_code == 303


async def test_what_is_stored_opens_nothing():
    async with console() as world:
        secret, browser = await world.key("acme", "read"), world.browser()
        given = cookie(await sign_in(browser, secret))
        log = world.store.log(TENANT)
        names = [each.session for each in (await log.sessions()).sessions]
        (name,) = [each for each in names if each.startswith("console-")]
        stored = b"".join(entry.body for entry in await log.read(name)).decode()
        assert given.value not in stored
        assert secret not in stored
        for taken in re.findall(r'"([0-9a-f]{64})"', stored):
            thief = world.browser()
            thief.cookies.set("refold-console-0", taken)
            assert (await thief.get(CONSOLE)).status_code == 303


async def test_sign_ins_of_days_that_are_over_are_forgotten():
    now, day = [1_000_000.0], 86_400
    async with console(clock=lambda: now[0]) as world:
        log = world.store.log(TENANT)
        for _ in range(4):
            await world.signed_in()
            now[0] += day
        names = [each.session for each in (await log.sessions()).sessions]
        assert len([each for each in names if each.startswith("console-")]) == 2


async def test_a_session_goes_on_over_midnight():
    now = [10 * 86_400 - 60.0]
    async with console(clock=lambda: now[0]) as world:
        browser = await world.signed_in()
        now[0] += 3_600
        assert (await browser.get(CONSOLE)).status_code == 200


@pytest.mark.parametrize("end", ["the key is revoked", "signed out"])
async def test_what_is_streamed_ends_with_the_session(end):
    async with console() as world:
        await talked(world, "acme", "talk")
        made, browser = await world.state.keyring.create("acme", ["read"]), world.browser(LOCAL)
        await sign_in(browser, made.secret, origin=LOCAL)
        token = form_token(await browser.get(CONSOLE))
        reading = asyncio.create_task(events_of(world, browser, f"{CONSOLE}/live", 99))
        await talked(world, "acme", "while it streams")
        if end == "signed out":
            form, origin = {"form_token": token}, {"origin": LOCAL}
            left = await browser.post(f"{CONSOLE}/sign-out", data=form, headers=origin)
            assert left.status_code == 303
        else:
            await world.state.keyring.revoke(made.key.id)
        await talked(world, "acme", "a cathedral")
        events = await asyncio.wait_for(reading, 60)
        assert events
        assert "cathedral" not in "".join(events)
