"""Secrets are taken out of what a summarizer is shown, and nothing else is."""

import base64
import json
import random
import re
import socket
import string
import uuid
from types import SimpleNamespace

import pytest
from growth import check_growth
from hypothesis import given
from hypothesis import strategies as st

from refold.fold import secrets
from refold.fold.secrets import REDACTED, redact, without_secrets

RNG = random.Random(7)  # noqa: S311 - made the same each time, and no secret
LETTERS = string.ascii_letters + string.digits
URL_SAFE = LETTERS + "-_"
HEX = "0123456789abcdef"


def made(length, alphabet=LETTERS):
    return "1a" + "".join(RNG.choices(alphabet, k=length - 2))


def token():
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": "1234567890", "iat": 1516239022})
    coded = (base64.urlsafe_b64encode(json.dumps(one).encode()).decode() for one in parts)
    return ".".join((*(one.rstrip("=") for one in coded), made(43, URL_SAFE)))


# Each is put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "AWS key id": ("AK" + "IA" + "Q2W3E4R5T6Y7U2I3", "export AWS_ACCESS_KEY_ID=%s"),
    "AWS secret": (made(40), "aws_secret_access_key = %s"),
    "Google": ("AI" + "za" + made(35, URL_SAFE), "curl https://maps.example/x?q=1&x=%s"),
    "OpenAI": ("s" + "k-proj-" + made(60, URL_SAFE), 'client = OpenAI("%s")'),
    "Anthropic": ("s" + "k-ant-api03-" + made(95, URL_SAFE), "using %s for it"),
    "GitHub": ("gh" + "p_" + made(36), "git clone with %s"),
    "GitHub, fine": ("github" + "_pat_" + made(22) + "_" + made(59), "gh auth %s"),
    "GitLab": ("gl" + "pat-" + made(20, URL_SAFE), "push with %s"),
    "Slack": ("xo" + "xb-" + "123456789012-123456789012-" + made(24), "slack: %s"),
    "Stripe": ("s" + "k_live_" + made(24), "stripe.key(%s)"),
    "Hugging Face": ("h" + "f_" + "aBcD" * 9, "login %s"),
    "JWT": (token(), "Set-Token %s"),
    "address": ("hunter" + "2pass", "postgres://admin:%s@db.example:5432/x"),
    "password": ("Tr0ub4dor" + "&3x", "password=%s"),
    "password, quoted": ("correct" + "horse", "DB_PASSWORD: '%s'"),
    "password, in JSON": ("correct" + "horse", '{"user": "me", "password": "%s"}'),
    "password, in JSON in JSON": ("correct" + "horse", r'"{\"password\": \"%s\"}"'),
    "bearer": (made(40, URL_SAFE), "Authorization: Bearer %s"),
    "basic": (
        base64.b64encode(b"someone:a long password 1").decode(),
        "-H 'Authorization: Basic %s'",
    ),
    "token": (made(40), '"refresh_token": "%s"'),
    "SendGrid": ("S" + "G." + made(22, URL_SAFE) + "." + made(43, URL_SAFE), "mail %s"),
}
WITH_DETECTOR = {
    "Mailchimp": (made(32, HEX) + "-us12", "chimp %s"),
    "Twilio": ("S" + "K" + made(32, HEX), "call %s"),
    "Square": ("sq0" + "csp-" + made(43), "square %s"),
}
PLAIN = [
    f"commit {made(40, HEX)}",
    f"git show {made(7, HEX)}",
    f"id {uuid.UUID(int=RNG.getrandbits(128))}",
    f"    --hash=sha256:{made(64, HEX)} \\",
    f'"integrity": "sha512-{base64.b64encode(RNG.randbytes(64)).decode()}"',
    f"data:image/png;base64,{base64.b64encode(RNG.randbytes(3000)).decode()}",
    "packages/coding-agent/src/modes/interactive/interactive-mode-2.ts",
    "tests/test_very_long_name_of_a_thing_12345678901234567890.py",
    "def test_every_pin_has_a_hash_and_no_address_2024():",
    "keyboard_shortcut_token_count = count_tokens(text)",
    "the token: a word or a piece of one; the secret: practice",
    "key = sorted(found)[0]; token = tokens[0]; secret = secrets_2[0]",
    "password: str, api_key: str | None = None",
    "apiKey: process.env.OPENAI_API_KEY, password: getPassword2(user)",
    '"password": "string", "token": "<token>", "secret": "${SECRET_1}"',
    '"tool_call_id": "call_9Xb2kLmNqRsTuVwXyZ012345"',
    "bearer of the news, basic structure; Authorization: Bearer <token>",
    "https://user@example.com/x and mailto://a@b",
    "max_tokens=4096 session_01H8XGJWBWBAQ4Z5Q",
    "class sk-folding-cube, npm_config_registry, hf_hub_download_from_cache",
]


@pytest.fixture(params=["with the detector", "without it"])
def detector(request, monkeypatch):
    if request.param == "without it":
        monkeypatch.setattr(secrets, "detectors", lambda: ())
    elif not secrets.detectors():
        pytest.skip("bc-detect-secrets is not installed")


@pytest.mark.usefixtures("detector")
@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_taken_out_and_the_rest_stays(name):
    secret, around = SECRETS[name]
    text = f"before\r\n{around % secret}\n\tafter"
    found = redact(text)
    assert secret not in found
    left = max(found.split(REDACTED), key=len)
    assert not set(re.findall(r"\w{8,}", secret)) & set(re.findall(r"\w{8,}", left))
    before, _, after = around.partition("%s")
    assert found.startswith(f"before\r\n{before[:6]}")
    assert found.endswith(f"{after}\n\tafter")
    assert redact(found) == found


@pytest.mark.parametrize("name", WITH_DETECTOR)
def test_the_detector_knows_more_providers(name):
    if not secrets.detectors():
        pytest.skip("bc-detect-secrets is not installed")
    secret, around = WITH_DETECTOR[name]
    assert redact(around % secret) == around % REDACTED


@pytest.mark.usefixtures("detector")
@pytest.mark.parametrize("text", PLAIN)
def test_hashes_ids_paths_and_names_stay(text):
    assert redact(text) == text


@pytest.mark.parametrize("ending", ["\n-----END RSA PRIV" + "ATE KEY-----\nafter", ""])
def test_a_private_key_is_taken_out_whole_or_cut_off(ending):
    begin = "-----BEGIN RSA PRIV" + "ATE KEY-----"
    body = "\n".join(made(64) for _ in range(12))
    found = redact(f"a\n{begin}\n{body}{ending}")
    assert found == f"a\n{begin}{REDACTED}{ending.lstrip()}"


def test_a_secret_in_a_line_of_a_megabyte_is_found():
    secret, _ = WITH_DETECTOR["Square"]
    if not secrets.detectors():
        pytest.skip("bc-detect-secrets is not installed")
    for at in (0, 1_690, 1_990, 60_000):
        line = "x " * (at // 2) + secret + " y" * 30_000
        assert redact(line) == line.replace(secret, REDACTED)


class Fails:
    def analyze_string(self, string):
        raise ValueError(string)


class Finds:
    def analyze_string(self, string):
        return [one for one in string.split() if one.startswith("found1")]


@pytest.mark.parametrize("failing", [(Fails(), Finds()), (Finds(), Fails())])
def test_a_line_that_a_detector_fails_at_is_taken_out_and_that_is_said(
    failing, monkeypatch, caplog
):
    secrets._warn.cache_clear()
    monkeypatch.setattr(secrets, "detectors", lambda: failing)
    text = "kept\na found1234567890123 and secret9876543210987 b\r\nshort 1\nx hidden12345678901234"
    with caplog.at_level("WARNING", "refold.fold"):
        shown = redact(text)
        assert redact(text) == shown
    assert shown == f"kept\n{secrets.UNCHECKED}\r\nshort 1\n{secrets.UNCHECKED}"
    [record] = caplog.records
    message = record.getMessage()
    assert "The secret detector Fails failed (ValueError)." in message
    assert "pip install --upgrade bc-detect-secrets" in message
    assert "secret98" not in message
    assert record.exc_info is None


def _no_mapping():
    raise AttributeError("get_mapping")


@pytest.mark.parametrize(
    "package",
    [
        SimpleNamespace(),
        SimpleNamespace(get_mapping_from_secret_type_to_class=_no_mapping),
        SyntaxError("not for this Python"),
        ImportError("a library is missing"),
    ],
)
def test_a_package_that_does_not_work_lets_no_line_through(package, monkeypatch, caplog):
    def load(_name):
        if isinstance(package, Exception):
            raise package
        return package

    secrets._warn.cache_clear()
    monkeypatch.setattr(secrets, "import_module", load)
    secrets.detectors.cache_clear()
    try:
        with caplog.at_level("WARNING", "refold.fold"):
            shown = redact("plain\nkey9876543210987654321\n")
    finally:
        secrets.detectors.cache_clear()
    assert shown == f"plain\n{secrets.UNCHECKED}\n"
    assert "The secret detector bc-detect-secrets failed" in caplog.text


def test_nothing_is_asked_of_the_network(monkeypatch):
    def refused(*_, **__):
        raise AssertionError

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    for secret, around in (*SECRETS.values(), *WITH_DETECTOR.values()):
        redact(around % secret)


@given(st.text() | st.text("ab1=:\"' \n-_/@.{}password", max_size=200))
def test_nothing_raises_and_lines_stay(text):
    found = redact(text)
    assert found == redact(text)
    if REDACTED not in found:
        assert found == text


HARD = ["a", "a1", "eyJ", "eyJaaaaaaaa1.", "http://a:", "password=", 'key="', "sk-a1", "auth:", " "]


@pytest.mark.parametrize("piece", [*HARD, "-----BEGIN PRIV" + "ATE KEY-----"])
def test_the_time_grows_with_the_length_and_no_faster(piece):
    check_growth(redact, piece, 20_000)


def test_what_stays_for_good_says_less():
    secret, around = SECRETS["GitHub"]
    assert without_secrets(around % secret) == "git clone with …"
    assert "…" in without_secrets(f"commit {made(40, HEX)}")
