"""What the keys do."""

from collections.abc import Callable
from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Always, Condition, Filter
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from refold.cli.chat.terminal.picker import Picker


class Typed(Protocol):
    """What keys act upon."""

    buffer: Buffer
    picker: Picker | None

    def send(self) -> None:
        """Give what was typed to the chat."""
        ...

    def line_feed(self) -> None:
        """Ctrl-J."""
        ...

    def take_back(self) -> bool:
        """Put a line that waits back into the input: whether there was one."""
        ...

    def interrupt(self) -> None:
        """Ctrl-C."""
        ...

    def escape(self) -> None:
        """Escape."""
        ...

    def leave(self) -> None:
        """Ctrl-D on an empty input."""
        ...

    def clear(self) -> None:
        """Ctrl-L."""
        ...

    def paste(self, text: str) -> None:
        """A text was pasted into the input line."""
        ...

    def typed_ahead(self, text: str) -> None:
        """A key was pressed before the list could be seen."""
        ...

    def pick(self) -> None:
        """Enter was pressed in the list."""
        ...


Handler = Callable[[KeyPressEvent], None]


class Bind(Protocol):
    """Has a key do something."""

    def __call__(self, *names: str, to: Handler, when: Filter) -> None:
        """Under a condition."""
        ...


def bindings(on: Typed) -> KeyBindings:
    """All keys that are not those of every editor."""
    keys = KeyBindings()
    picking = Condition(lambda: on.picker is not None)
    unseen = Condition(lambda: on.picker is not None and on.picker.visible is None)
    typing = ~picking
    empty = Condition(lambda: not on.buffer.text)

    def bind(*names: str, to: Handler, when: Filter = typing) -> None:
        keys.add(*names, filter=when)(to)

    bind("c-c", to=lambda _: on.interrupt(), when=Always())
    bind("<sigint>", to=lambda _: on.interrupt(), when=Always())
    bind("escape", to=lambda _: on.escape(), when=Always())
    bind("c-z", to=lambda event: event.app.suspend_to_background(), when=Always())
    bind("enter", to=lambda _: on.send())
    bind("escape", "enter", to=lambda _: on.buffer.newline(copy_margin=False))
    bind("c-j", to=lambda _: on.line_feed())
    bind("c-l", to=lambda _: on.clear())
    bind("c-d", to=lambda _: on.leave(), when=typing & empty)
    bind("tab", to=lambda _: _complete(on.buffer))
    bind("s-tab", to=lambda _: on.buffer.complete_previous())
    bind("up", to=lambda _: _up(on))
    bind("down", to=lambda _: _down(on.buffer))

    bind(Keys.BracketedPaste, to=lambda event: on.paste(event.data))

    _bind_list(on, bind, picking)
    # Last, so that it goes before the list's own keys.
    for name in (Keys.Any, Keys.BracketedPaste, Keys.Enter):
        bind(name, to=lambda event: on.typed_ahead(event.data), when=unseen)
    return keys


def _bind_list(on: Typed, bind: Bind, picking: Filter) -> None:
    def moved(by: int, *, pages: bool = False) -> Handler:
        def move(_: KeyPressEvent) -> None:
            if on.picker:
                (on.picker.page if pages else on.picker.move)(by)

        return move

    bind("enter", to=lambda _: on.pick(), when=picking)
    for names, by in ((("up", "c-p"), -1), (("down", "c-n"), 1)):
        for name in names:
            bind(name, to=moved(by), when=picking)
    bind("pageup", to=moved(-1, pages=True), when=picking)
    bind("pagedown", to=moved(1, pages=True), when=picking)


def _complete(buffer: Buffer) -> None:
    if buffer.complete_state:
        buffer.complete_next()
    else:
        buffer.start_completion(insert_common_part=True)


def _up(on: Typed) -> None:
    if on.buffer.complete_state:
        on.buffer.complete_previous()
    elif on.buffer.text or not on.take_back():
        on.buffer.auto_up()


def _down(buffer: Buffer) -> None:
    if buffer.complete_state:
        buffer.complete_next()
    else:
        buffer.auto_down()
