"""What is used of prompt_toolkit that it does not call public. A test sees that it is all there.

prompt_toolkit redraws when the window's size changes, and first erases by the old size. It has no
public way to do something else then.
"""

from prompt_toolkit.application import Application


class ResizableApplication(Application[None]):
    """An application that only redraws when the window's size changes."""

    def _on_resize(self) -> None:
        self._redraw()
