"""Counting tokens: the estimate and its bounds, marks and media, and calibration by usage."""

import base64
import json
from collections import Counter as Tally
from collections.abc import Iterator
from random import Random
from statistics import median

import pytest
from folding import sheet_of
from hypothesis import given
from hypothesis import strategies as st
from project_paths import DATA
from sessions import Session

from refold.errors import InvalidInput
from refold.log import Message
from refold.models import counter_for
from refold.models.catalog import tokenizer
from refold.view.budget import PER_MESSAGE, Budget
from refold.view.profiles import PROFILES
from refold.view.tokens import (
    ABSURD,
    BOUNDS,
    DOCUMENT,
    ENOUGH,
    FILM,
    LAST,
    REQUEST_SPREAD,
    SMALLEST,
    SOUND,
    Calibration,
    Content,
    Correction,
    Estimate,
    Marks,
    calibrated,
    corrected,
    estimate,
    tools_tokens,
)
from refold.view.view import View
from refold.wire import WIRES, Kind, Shape

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no recorded sessions beside the project")


def exact(text: str) -> int:
    if tokenizer("o200k") is None:
        pytest.skip("rs-bpe is not installed")
    return counter_for("gpt-4o").text(text)


def pi_parts() -> Iterator[tuple[Content, str]]:
    """The parts of two coding sessions."""
    for file in sorted(DATA.glob("pi_*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            message = json.loads(line).get("message", {})
            for part in message.get("content", ()):
                if part["type"] == "toolCall":
                    yield "json", json.dumps(part["arguments"], ensure_ascii=False)
                else:
                    returned = message["role"] == "toolResult"
                    yield "code" if returned else "prose", part.get("text") or part["thinking"]


def tau_parts() -> Iterator[tuple[Content, str]]:
    """The parts of two hundred conversations with an airline, but its policy only once."""
    runs = json.loads((DATA / "tau_gpt-4o-airline.json").read_text(encoding="utf-8"))
    for message in (one for run in runs for one in run["traj"][1 if run is not runs[0] else 0 :]):
        yield "json" if message["role"] == "tool" else "prose", message.get("content") or ""
        for call in message.get("tool_calls") or ():
            yield "json", call["function"]["arguments"]


def locomo_parts() -> Iterator[tuple[Content, str]]:
    """What people say to each other over months."""
    for sample in json.loads((DATA / "locomo10.json").read_text(encoding="utf-8")):
        for session in sample["conversation"].values():
            for turn in session if isinstance(session, list) else ():
                yield "prose", turn["text"]


@needs_data
def test_the_estimate_keeps_its_bounds_on_recorded_messages():
    errors: dict[Content, list[tuple[int, int]]] = {"prose": [], "json": [], "code": []}
    for content, text in (*pi_parts(), *tau_parts(), *locomo_parts()):
        if text:
            errors[content].append((estimate(text), exact(text)))
    for content, pairs in errors.items():
        assert len(pairs) > 800
        bound = BOUNDS[content]
        kept = sum(bound.holds(*pair) for pair in pairs)
        assert median(abs(guess - true) / true for guess, true in pairs) < 0.07, content
        assert kept / len(pairs) >= 0.99, content
        assert 0.95 < sum(guess for guess, _ in pairs) / sum(true for _, true in pairs) < 1.05


@needs_data
def test_errors_even_out_over_a_request():
    counted = true = stretches = 0
    for _, text in pi_parts():
        counted, true = counted + estimate(text), true + exact(text)
        if true > 20_000:
            assert true <= counted * (1 + REQUEST_SPREAD)
            counted, true, stretches = 0, 0, stretches + 1
    assert stretches > 20


def grown() -> Iterator[tuple[int, int]]:
    """By how much requests to Claude grew, as estimated and as reported, in stretches."""
    counter = counter_for("claude-sonnet-4-5")
    kinds: dict[str, Kind] = {"toolResult": "return", "user": "prompt", "assistant": "text"}
    for file in sorted(DATA.glob("pi_*.jsonl")):
        before = new = estimated = reported = 0
        for entry in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            message = entry.get("message", {})
            usage = message.get("usage", {})
            sent = sum(usage.get(name, 0) for name in ("input", "cacheRead", "cacheWrite"))
            if entry["type"] in {"compaction", "model_change"} or 0 < sent < before:
                before = estimated = reported = 0
            if sent and before:
                estimated, reported = estimated + new, reported + sent - before
            if estimated > 20_000:
                yield estimated, reported
                estimated = reported = 0
            if sent:
                before, new = sent, 0
            for part in message.get("content", ()):
                if part["type"] == "toolCall":
                    new += counter.part(Shape("call", json.dumps(part["arguments"]), part["name"]))
                elif part["type"] == "text":
                    new += counter.part(Shape(kinds[message["role"]], part["text"]))


@needs_data
def test_the_estimate_for_claude_meets_recorded_usage():
    calibration = Calibration(prior=counter_for("claude-sonnet-4-5").spread)
    for estimated, reported in grown():
        calibration = calibration.observed(estimated, reported)
    assert len(calibration.pairs) > 15
    assert 0.95 <= calibration.factor <= 1.05
    close = [0.85 < reported / counted < 1.15 for counted, reported in calibration.pairs]
    assert sum(close) >= 0.8 * len(close)


SAMPLES = {
    "prose": [
        "Could you look into why the nightly import stopped? It worked until Tuesday.",
        "I have moved the validation into its own module, and every caller now shares it.",
        "Thank you! Please keep the old behaviour for accounts that were opened before March.",
        "The second attempt failed as well: the server answers, but the certificate has expired.",
        "Let's not rename anything yet; we would only have to explain it twice.",
    ],
    "json": [
        '{"path":"src/app/orders.py","offset":120,"limit":40}',
        '{"user_id": "mia_li_3668", "flights": [{"number": "HAT136", "date": "2024-05-20"}]}',
        '{"total": 1284.5, "currency": "EUR", "items": [{"sku": "A-113", "count": 3}]}',
        '{"status":"ok","rows":[["id","name"],[1,"first"],[2,"second"]],"next":null}',
    ],
    "code": [
        "def total(orders: list[Order]) -> Decimal:\n    return sum(o.price for o in orders)\n",
        "for (const item of items) {\n\tif (!item.isReady) continue;\n\tawait send(item);\n}\n",
        "SELECT name, count(*) FROM visits WHERE day >= '2026-01-01' GROUP BY name;\n",
        "diff --git a/app.py b/app.py\n-    retries = 3\n+    retries = settings.retries\n",
    ],
    "cjk": [
        "请帮我看一下为什么昨晚的导入任务没有完成,周二之前都是正常的。",
        "验证的代码已经移到单独的模块里,所有调用者都共用它。",
        "夜間の取り込みが止まった理由を調べてください。火曜日までは動いていました。",
        "検証は別のモジュールに移しました。呼び出し側はすべてそれを使います。",
        "어젯밤 가져오기 작업이 왜 멈췄는지 확인해 주세요. 화요일까지는 잘 됐습니다.",
        "검증 코드를 별도 모듈로 옮겼고 모든 호출자가 함께 사용합니다.",
    ],
    "script": [
        "Посмотри, пожалуйста, почему ночной импорт остановился: до вторника всё работало.",
        "Проверка теперь вынесена в отдельный модуль, общий для всех вызовов.",
        "Die Prüfung liegt jetzt in einem eigenen Modul; alle Aufrufer benutzen sie gemeinsam.",
        "Vérifiez s'il vous plaît pourquoi l'importation de la nuit s'est arrêtée mardi.",
    ],
}


def messages_of(content: str, random: Random) -> list[str]:
    if content == "encoded":
        data = [random.randbytes(random.randrange(10, 3_000)) for _ in range(50)]
        return [one.hex() for one in data] + [base64.b64encode(one).decode() for one in data]
    lengths = [random.randrange(1, 40) for _ in range(100)]
    return ["\n".join(random.choices(SAMPLES[content], k=length)) for length in lengths]


@pytest.mark.parametrize("content", list(BOUNDS))
def test_the_estimate_keeps_its_bounds_on_samples(content):
    messages = messages_of(content, Random(1))  # noqa: S311 - seeded, not secret
    kept = [BOUNDS[content].holds(estimate(text), exact(text)) for text in messages]
    assert sum(kept) / len(kept) >= 0.99


def test_a_bound_is_a_share_and_some_slack():
    assert BOUNDS["prose"].holds(118, 100)
    assert not BOUNDS["prose"].holds(119, 100)
    assert not BOUNDS["prose"].holds(81, 100)


@given(st.text(st.characters(), max_size=200), st.text(max_size=200))
def test_any_text_can_be_estimated(left, right):
    both = estimate(left + right)
    assert both == estimate(left + right) >= (1 if left + right else 0)
    assert abs(both - estimate(left) - estimate(right)) <= 5


def test_what_was_never_seen_costs_nothing_and_surrogates_do_not_crash():
    assert estimate("") == Estimate().text("") == exact("") == 0
    for text in ("a\ud800b", "\udfff" * 3):
        assert estimate(text) > 0
        assert exact(text) > 0


def test_special_tokens_are_plain_text():
    assert exact("<|endoftext|>") > 5
    assert exact("<|im_start|>system<|im_end|>") > 8


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "something"])
def test_parts_weigh_more_than_their_text(model):
    counter = counter_for(model)
    text = "How many seats are left on flight HAT136? " * 20
    shapes = [Shape("prompt", text), Shape("call", text, "find_seats", "1"), Shape("return", text)]
    bare = [counter.text(one.text, one.kind) for one in shapes]
    around = [counter.part(one) - own for one, own in zip(shapes, bare, strict=True)]
    assert all(2 <= extra <= 60 for extra in around)
    assert around[1] > around[2]


@pytest.mark.parametrize(
    ("media", "tokens"),
    [
        ("image/png", 1_105),
        ("image-url", 1_105),
        ("audio/wav", SOUND),
        ("audio", SOUND),
        ("video-url", FILM),
        ("application/pdf", DOCUMENT),
        ("binary", DOCUMENT),
    ],
)
def test_media_are_counted(media, tokens):
    counter = counter_for("gpt-4o")
    plain = counter.part(Shape("prompt", "Look"))
    assert counter.part(Shape("prompt", "Look", media=(media, media))) == plain + 2 * tokens


def test_tool_definitions_are_counted_apart():
    counter = counter_for("gpt-4o")
    one = '{"name":"read","description":"Reads a file.","parameters":{"type":"object"}}'
    assert tools_tokens(counter, []) == 0
    assert tools_tokens(counter, [one]) == counter.text(one) + 8 + 16
    assert tools_tokens(counter, [one, one]) - tools_tokens(counter, [one]) < 40
    assert tools_tokens(counter, [one], Marks(tools=346)) - tools_tokens(counter, [one]) == 330


ratios = st.floats(0.3, 3.5)
sizes = st.integers(1_000, 500_000)


@given(ratios, st.lists(sizes, min_size=ENOUGH, max_size=LAST + 20))
def test_a_constant_ratio_is_found(ratio, counted):
    calibration = Calibration(prior=0.3)
    for size in counted:
        calibration = calibration.observed(size, round(size * ratio))
    assert calibration.factor == pytest.approx(ratio, abs=0.0051 + 0.001)
    assert calibration.spread < 0.03
    assert len(calibration.pairs) <= LAST


@given(st.lists(st.tuples(st.integers(-5, 10**6), st.integers(-5, 10**6)), max_size=150))
def test_the_spread_covers_what_was_observed(pairs):
    calibration = Calibration(prior=0.2)
    for pair in pairs:
        calibration = calibration.observed(*pair)
    kept = calibration.pairs
    assert all(1 / ABSURD <= reported / counted <= ABSURD for counted, reported in kept)
    assert calibration.factor > 0
    assert calibration.spread >= SMALLEST
    ceiling = calibration.factor * (1 + calibration.spread)
    covered = sum(reported <= counted * ceiling * 1.000001 for counted, reported in kept)
    assert covered >= 0.99 * len(kept)
    assert Calibration.from_json(calibration.to_json()) == calibration


def test_without_observations_the_counter_is_trusted_within_its_prior():
    fresh = Calibration(prior=0.25)
    assert (fresh.factor, fresh.spread) == (1.0, 0.25)
    counter = calibrated(Estimate(), fresh)
    assert counter.text("some words") == estimate("some words")
    assert counter.spread == 0.25


def test_the_prior_fades_with_each_observation():
    spreads, calibration = [], Calibration(prior=0.4)
    for _ in range(ENOUGH + 1):
        spreads.append(calibration.spread)
        calibration = calibration.observed(10_000, 10_000)
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[-1] == SMALLEST < spreads[-2]


def test_a_few_wild_reports_do_not_move_the_factor():
    calibration = Calibration()
    for reported in [120_000] * 20 + [350_000] * 5 + [900_000, 0, -1, 120]:
        calibration = calibration.observed(100_000, reported)
    assert calibration.factor == 1.2
    assert Tally(reported for _, reported in calibration.pairs) == {120_000: 20, 350_000: 5}
    assert calibration.spread == pytest.approx(350 / 120 - 1)


def test_a_change_is_followed():
    calibration = Calibration()
    for reported in [1_200] * LAST + [1_500] * (LAST // 2 + 2):
        calibration = calibration.observed(1_000, reported)
    assert calibration.factor == 1.5


def test_calibrated_counts_are_corrected_and_named():
    calibration = Calibration(pairs=((1_000, 1_500),) * ENOUGH)
    counter = calibrated(Estimate(), calibration)
    shape = Shape("return", "What a tool returned.", "read")
    assert counter.name == "estimate * 1.50"
    assert counter.part(shape) == -(-Estimate().part(shape) * 3 // 2)


@pytest.mark.parametrize("text", ["", "[]", '{"pairs":[[1]]}', '{"prior":0}', '{"colour":1}'])
def test_what_is_no_calibration_is_refused(text):
    with pytest.raises(InvalidInput, match="Start with Calibration"):
        Calibration.from_json(text)


def test_a_return_that_is_put_in_costs_what_it_costs_in_a_request():
    """With its tool's name: else a request is larger than its plan says."""
    session, wire = Session("pydantic-ai"), WIRES["pydantic-ai"]
    long = "a_tool_with_a_name_of_some_length"
    call = {"part_kind": "tool-call", "tool_name": long, "args": "{}", "tool_call_id": "c"}
    for message in (
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "One?"}]},
        {"kind": "response", "parts": [call]},
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Two?"}]},
    ):
        session.add(Message(json.dumps(message).encode()), "/")
    inputs = sheet_of(session, wire)
    request = View(inputs, PROFILES["balanced"]).request(Budget(window=10_000))
    shapes = [wire.describe(one).shapes for one in request.messages]
    assert any(shape.kind == "return" for one in shapes for shape in one)
    assert request.plan.tokens == sum(
        PER_MESSAGE + sum(map(inputs.counter.part, one)) for one in shapes
    )


@given(
    factor=st.floats() | st.floats(0.2, 5),
    spread=st.floats() | st.floats(0, 20),
)
def test_what_a_log_says_of_a_counter_is_believed_within_bounds(factor, spread):
    """A log may come from anybody: no count becomes zero, endless or absurd."""
    plain, text = counter_for("a-model-that-nobody-knows"), "How was it counted? " * 20
    counter = corrected(plain, Correction(plain.name, factor, spread))
    assert plain.text(text) // ABSURD <= counter.text(text) <= plain.text(text) * ABSURD + 1
    assert 0 <= counter.spread <= ABSURD**2
    assert corrected(counter, None) == plain
    assert corrected(plain, Correction("another", factor, spread)) == plain
