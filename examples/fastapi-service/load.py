"""Two prompts in each of 100 conversations, 20 at once, against the running service."""

import json
from concurrent.futures import ThreadPoolExecutor
from urllib.request import Request, urlopen

URL = "http://127.0.0.1:8123/conversations"


def say(conversation: str, text: str) -> str:
    body = json.dumps({"text": text}).encode()
    headers = {"Content-Type": "application/json"}
    request = Request(f"{URL}/{conversation}", body, headers)  # noqa: S310 - our own address
    with urlopen(request, timeout=60) as answer:  # noqa: S310
        return json.load(answer)


def talk(number: int) -> bool:
    first = f"I am visitor {number}."
    say(f"visitor-{number}", first)
    return say(f"visitor-{number}", "What did I say first?") == f"You began with: {first}"


with ThreadPoolExecutor(20) as visitors:
    right = sum(visitors.map(talk, range(100)))
print(right, "of 100 conversations remembered their own beginning")
