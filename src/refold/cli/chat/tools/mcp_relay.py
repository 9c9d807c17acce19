"""Stands between the chat and an MCP server, and bounds what the server may write.

The library that reads a server's output keeps a line until its end comes, however long it is, and
a server's errors go to a file. This program passes lines on up to a length, and keeps the last of
what the server says in errors. It is run as a script by an isolated Python, so it imports nothing
but the standard library.
"""

import os
import subprocess
import sys
import threading

_CHUNK = 1 << 16
_ERRORS_AT_ONCE = 1 << 16
"""Bytes of errors that are passed on as they come; of all after that, only the last."""
_LAST_ERRORS = 1 << 12


def main(max_line: int, command: list[str]) -> int:
    try:
        # The server reads the chat's requests itself.
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603 - the user's own command
    except (OSError, ValueError) as error:
        _write(2, f"{command[0]!r} cannot be started: {error}\n".encode())
        return 127
    assert server.stdout is not None  # noqa: S101 - asked for
    assert server.stderr is not None  # noqa: S101 - asked for
    errors = threading.Thread(target=_pass_errors, args=(server.stderr.fileno(),), daemon=True)
    errors.start()
    whole = _pass_lines(server.stdout.fileno(), max_line)
    if not whole:
        server.kill()
    # Whoever reads must learn that nothing more comes, also if the server goes on without it.
    os.close(1)
    code = server.wait()
    errors.join(1.0)
    if not whole:
        _write(2, f"\nIt sent a message of more than {max_line >> 20} MB.\n".encode())
    return code if code >= 0 else 1


def _pass_lines(source: int, max_line: int) -> bool:
    """Pass on what the server writes, to its end; whether no line was too long."""
    length = 0
    while chunk := os.read(source, _CHUNK):
        before, newline, _ = chunk.partition(b"\n")
        if length + len(before) > max_line:
            return False
        length = len(chunk) - chunk.rfind(b"\n") - 1 if newline else length + len(before)
        if not _write(1, chunk):
            return True  # nobody reads any more: the server's input has ended, too
    return True


def _pass_errors(source: int) -> None:
    passed, last = 0, b""
    while chunk := os.read(source, _CHUNK):
        if passed < _ERRORS_AT_ONCE:
            _write(2, chunk)
            passed += len(chunk)
        else:
            last = (last + chunk)[-_LAST_ERRORS:]
    if last:
        _write(2, b"\n" + last)


def _write(target: int, data: bytes) -> bool:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(target, view) :]
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
