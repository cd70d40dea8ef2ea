"""Everything that the pages show, by part, and in which version each part last changed."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from isoloss.report.templates import fill, policy
from isoloss.report.templates import text as file
from isoloss.serve.view import View, axes_of
from isoloss.serve.watch import Watch


class Board:
    """A page holds a version and is told what changed since: one that lags is told less often, never more."""

    def __init__(self, folders: Sequence[Path]):
        self.views = [View(Watch(folder), f"s{number}") for number, folder in enumerate(folders)]
        self.version = 0
        self._parts: dict[str, dict[str, str]] = {view.id: {} for view in self.views}
        self._changed: dict[str, int] = dict.fromkeys(self._parts, 0)

    def look(self) -> dict[str, dict[str, str]]:
        """Every part as it is now, by section. For a thread: it reads folders, and changes no version."""
        for view in self.views:
            try:
                view.watch.look()
            except Exception as error:  # one study that makes no sense must not take the others along
                view.watch.trouble = f"{type(error).__name__}: {error}"
        axes = axes_of([view.watch for view in self.views])
        return {view.id: view.parts(axes) for view in self.views}

    def put(self, sections: dict[str, dict[str, str]]) -> None:
        """Make this what pages see. A section with other parts than before is told as a whole."""
        changed: list[str] = []
        for id, parts in sections.items():
            before = self._parts[id]
            if before.keys() != parts.keys():
                changed.append(id)
            changed += [name for name, html in parts.items() if before.get(name) != html]
            self._parts[id] = parts
        if changed:
            self.version += 1
            self._changed |= dict.fromkeys(changed, self.version)

    def since(self, version: int) -> dict[str, str]:
        """HTML by id of what has changed since that version."""
        out: dict[str, str] = {}
        for view in self.views:
            parts = self._parts[view.id]
            if self._changed[view.id] > version:
                out[view.id] = str(view.section(parts))
            else:
                out |= {name: html for name, html in parts.items() if self._changed[name] > version}
        return out

    def page(self) -> str:
        """The whole page as it is now."""
        script = file("serve/live.js")
        count = len(self.views)
        style = file("serve/live.css") + f":root {{ --studies: {count}; }}"
        return str(
            fill(
                "serve/page.html",
                title="A study while it trains" if count == 1 else f"{count} studies while they train",
                policy=policy(script, server=True),
                style=Markup(style),  # noqa: S704 - our own file
                script=Markup(script),  # noqa: S704 - our own file
                version=self.version,
                studies=[view.section(self._parts[view.id]) for view in self.views],
            )
        )
