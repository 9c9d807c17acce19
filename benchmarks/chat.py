"""`refold chat` in a real (pseudo-)terminal: how soon it is there, how soon a key is seen, how much
memory a long session takes."""

import subprocess
import sys
import time
from statistics import median

from benchmarks.chat_echo import echo
from benchmarks.chat_ground import MODEL, Ground, ground
from benchmarks.chat_memory import memory
from benchmarks.figures import Figure

MOST = 1.0
_PROMPT = "›"  # noqa: RUF001 - as the chat has it


def figures(*, quick: bool) -> list[Figure]:
    """All of them."""
    return [*_start(quick=quick), *echo(quick=quick), *memory(quick=quick)]


def _start(*, quick: bool) -> list[Figure]:
    """In turn, so that whatever else the machine is at slows both."""
    imports, prompts, readies = list[float](), list[float](), list[float]()
    with ground() as made:
        for nth in range(4 if quick else 8):
            took = _import(made), *_prompt(made)
            if nth:  # the first reads files that the others find in memory
                for kept, seconds in zip((imports, prompts, readies), took, strict=True):
                    kept.append(seconds)
    base, prompt, ready = median(imports), median(prompts), median(readies)
    beside = '`python -c "import pydantic_ai"`'
    return [
        Figure(f"chat: start to a prompt that echoes / {beside}", prompt / base, MOST, "at most"),
        Figure(f"chat: start to ready to send / {beside}", ready / base),
        Figure("chat: start to a prompt that echoes, s", prompt),
        Figure("chat: start to ready to send, s", ready),
    ]


def _import(made: Ground) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", "import pydantic_ai"], check=True, cwd=made.folder, env=made.env
    )
    return time.perf_counter() - began


def _prompt(made: Ground) -> tuple[float, float]:
    """Seconds until a key was echoed, and until the status line says with whom one talks."""
    with made.chat("start.db") as chat:
        chat.until(_PROMPT)  # before it, the terminal itself would echo
        chat.echo()
        echoed = time.perf_counter() - chat.began
        chat.until("/help")
        return echoed, chat.until(MODEL, since=chat.text.index("/help"))
