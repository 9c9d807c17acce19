"""Daily files under several processes and threads, and processes that die while they write."""

import asyncio
import signal
import subprocess
import sys
import textwrap
from datetime import UTC, datetime

import pytest

from refold.memory import DailyFiles, Note
from refold.memory.daily import MARK

NOON = int(datetime(2026, 3, 14, 12, 5, tzinfo=UTC).timestamp() * 1000)
SIZE = 20_000

WRITER = textwrap.dedent(
    """
    import asyncio, os, signal, sys
    from datetime import UTC
    from refold.memory import DailyFiles, Note

    folder, who, first, last, dies_at, at, size = sys.argv[1:3] + [int(one) for one in sys.argv[3:]]
    real = os.write

    def dying(file, data):
        # A write that the system did by half when the process was killed.
        real(file, data[: len(data) * dies_at // 100])
        os.kill(os.getpid(), signal.SIGKILL)

    async def main():
        sink = DailyFiles(folder, zone=UTC)
        for nth in range(first, last):
            if dies_at and nth == last - 1:
                os.write = dying
            await sink.write(Note(who, at, "trimmed", f"{who} {nth} " + "é" * size))
            print(nth, flush=True)

    asyncio.run(main())
    """
)


def start(folder, who, first, last, *, dies_at=0, size=SIZE):  # noqa: PLR0913 - as the writer
    args = [str(folder), who, *map(str, (first, last, dies_at, NOON, size))]
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, *args], stdout=subprocess.PIPE, text=True
    )


def note(who, nth, size=SIZE):
    return Note(who, NOON, "trimmed", f"{who} {nth} " + "é" * size)


def ended(one):
    return f"\n{one.text}\n\n{MARK.format(digest=one.digest)}\n"


def there(folder, notes, *, torn=False):
    file = folder / "memory" / "2026-03-14.md"
    text = file.read_bytes().decode(errors="replace" if torn else "strict")
    assert [text.count(ended(one)) for one in notes] == [1] * len(notes)
    assert text.startswith("# Daily Memory: 2026-03-14\n")
    return text


def test_two_processes_write_one_file(tmp_path):
    writers = [start(tmp_path, who, 0, 15) for who in ("a", "b")]
    for one in writers:
        one.communicate(timeout=60)
        assert one.returncode == 0
    notes = [note(who, nth) for who in ("a", "b") for nth in range(15)]
    text = there(tmp_path, notes)
    assert text.count("## Trimmed Context (12:05)\n") == len(notes)
    assert text.count("# Daily Memory") == 1


def test_the_same_notes_from_two_processes_are_there_once(tmp_path):
    for one in [start(tmp_path, "a", 0, 10) for _ in range(2)]:
        one.communicate(timeout=60)
    text = there(tmp_path, [note("a", nth) for nth in range(10)])
    assert text.count("## Trimmed Context") == 10


async def test_many_tasks_write_one_file(tmp_path):
    notes = [note("a", nth, 2_000) for nth in range(40)]
    sinks = [DailyFiles(tmp_path, zone=UTC) for _ in range(4)]
    await asyncio.gather(*(sinks[nth % 4].write(notes[nth // 2]) for nth in range(80)))
    assert there(tmp_path, notes).count("## Trimmed Context") == 40


@pytest.mark.parametrize("share", [10, 99, 100])
def test_a_process_that_dies_while_it_writes_damages_nothing(tmp_path, share):
    writer = start(tmp_path, "a", 0, 4, dies_at=share, size=700)
    done, _ = writer.communicate(timeout=60)
    assert writer.returncode == -signal.SIGKILL
    assert done.split() == ["0", "1", "2"]
    there(tmp_path, [note("a", nth, 700) for nth in range(3)], torn=True)
    notes = [note("b", 0, 700), *(note("a", nth, 700) for nth in range(4))]
    for one in notes:
        asyncio.run(DailyFiles(tmp_path, zone=UTC).write(one))
    there(tmp_path, notes)


def test_what_was_acknowledged_is_there_whenever_a_process_is_killed(tmp_path):
    told = []
    for turn in range(3):
        writer = start(tmp_path, "a", 10 * turn, 10 * turn + 10)
        assert writer.stdout is not None
        told += [int(writer.stdout.readline()) for _ in range(1 + 2 * turn)]
        writer.kill()
        rest, _ = writer.communicate(timeout=60)
        told += map(int, rest.split())
    there(tmp_path, [note("a", nth) for nth in told], torn=True)
    notes = [note("a", nth) for nth in range(30)]
    for one in notes:
        asyncio.run(DailyFiles(tmp_path, zone=UTC).write(one))
    there(tmp_path, notes)
