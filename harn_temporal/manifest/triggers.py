"""`[[triggers]]`: each entry becomes a binding, or one for each of its sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harn_temporal.bindings import DEFAULT_TIMEOUT_MS, Binding
from harn_temporal.gates.models import Gates
from harn_temporal.manifest.fingerprint import fingerprinted
from harn_temporal.manifest.gates import check_together
from harn_temporal.manifest.keys import UNUSED_TRIGGER_KEYS
from harn_temporal.manifest.problems import Notes, Place, Problems, shown
from harn_temporal.manifest.settings import Settings, read_settings
from harn_temporal.manifest.table import Table
from harn_temporal.retry import RetryPolicy

KINDS = ("webhook", "cron", "poll", "stream", "predicate", "a2a-push")
TICKED_KINDS = frozenset({"cron", "poll", "stream"})
ID_LIMIT = 200
_ID = f"a text of 1 to {ID_LIMIT} characters, without blanks and control characters"
_IDENTITY = ("kind", "provider", "match")


@dataclass(frozen=True)
class Trigger:
    """A binding as the manifest defines it, with what the manifest keeps besides."""

    binding: Binding
    kept: Mapping[str, Any]


@dataclass(frozen=True)
class _Identity:
    kind: str
    provider: str
    events: tuple[str, ...]


class TriggerReader:
    """Reads the entries of one manifest.

    `functions` gathers the functions that they name, each with the place of the key that does:
    also those of an entry which has a problem elsewhere.
    """

    def __init__(
        self, file: str, package: str, exports: Mapping[str, str], problems: Problems, notes: Notes
    ) -> None:
        self._file = file
        self._package = package
        self._exports = exports
        self._problems = problems
        self._notes = notes
        self._places: dict[str, str] = {}
        self.functions: list[tuple[str, str]] = []

    def read(self, entries: list[dict[str, Any]]) -> Iterator[Trigger]:
        for number, values in enumerate(entries, start=1):
            yield from self._read_trigger(number, values)

    def _read_trigger(self, number: int, values: dict[str, Any]) -> Iterator[Trigger]:
        given = values.get("id")
        label = shown(given) if isinstance(given, str) else "without an id"
        entry = f"[[triggers]] #{number} {label}"
        table = Table(values, Place(self._file, entry), self._problems)
        trigger_id = self._read_id(table, required=True) or f"#{number}"
        sources = table.array_of_tables("sources")
        settings = self._read_settings(table, trigger_id)
        self._check(table, settings, settings)
        if not table.has("handler") and not (
            sources and all("handler" in each for each in sources)
        ):
            table.wrong("handler", "a function, an a2a:// agent or a worker:// queue")
        if "sources" not in values:
            self._claim(table, trigger_id)
            identity = _read_identity(table)
            table.close(UNUSED_TRIGGER_KEYS)
            yield from self._bound(trigger_id, identity, settings)
            return
        if values["sources"] == []:
            table.wrong("sources", "an array of one table or more")
        for key in _IDENTITY:
            if table.value(key) is not None:
                table.problem(key, "each source has its own; move it into the sources")
        table.close(UNUSED_TRIGGER_KEYS)
        for index, source in enumerate(sources, start=1):
            yield from self._read_source(index, source, trigger_id, table, settings)

    def _read_source(
        self, index: int, values: dict[str, Any], trigger_id: str, trigger: Table, base: Settings
    ) -> Iterator[Trigger]:
        given = values.get("id")
        label = f" {shown(given)}" if isinstance(given, str) else ""
        place = Place(self._file, f"{trigger.place.entry}, sources #{index}{label}")
        table = Table(values, place, self._problems)
        source_id = self._read_id(table, required=False) or f"source-{index}"
        full_id = f"{trigger_id}.{source_id}"
        self._claim(table, full_id)
        own = self._read_settings(table, full_id)
        settings = base.overridden_by(own)
        self._check(table, own, settings)
        identity = _read_identity(table)
        table.close(UNUSED_TRIGGER_KEYS)
        yield from self._bound(full_id, identity, settings)

    def _read_settings(self, table: Table, trigger_id: str) -> Settings:
        settings = read_settings(table, self._exports, self._notes, trigger_id)
        if settings.handler is not None and settings.handler.kind == "local":
            self.functions.append((table.place.field("handler"), settings.handler.uri))
        if settings.when is not None and settings.when.kind == "function":
            self.functions.append((table.place.field("when"), settings.when.source))
        return settings

    def _read_id(self, table: Table, *, required: bool) -> str | None:
        value = table.value("id")
        if value is None and not required:
            return None
        fits = isinstance(value, str) and 0 < len(value) <= ID_LIMIT and value.isprintable()
        if fits and " " not in value:
            return str(value)
        table.wrong("id", _ID)
        return None

    def _claim(self, table: Table, full_id: str) -> None:
        """Report an id that another binding of the manifest has, whichever way it came by it."""
        first = self._places.setdefault(full_id, table.place.entry)
        if first != table.place.entry:
            table.problem("id", f'the id "{full_id}" is taken by {first}; ids are unique')

    def _check(self, table: Table, own: Settings, merged: Settings) -> None:
        """What no key shows by itself. `own` is what stands in this table, `merged` what holds."""
        if own.gates_named:
            check_together(table, merged.gates_named)
        handler = merged.handler
        if handler is None or handler.kind == "a2a":
            return
        said_here = own.handler is not None
        for key, given, holds in (
            ("allow_cleartext", own.allow_cleartext is not None, bool(merged.allow_cleartext)),
            ("a2a", own.agent is not None, merged.agent is not None),
            ("auth", own.bearer_env is not None, merged.bearer_env is not None),
        ):
            if holds and (given or said_here):
                table.problem(key, f"is for a2a:// handlers; this one is {handler.uri}")

    def _bound(
        self, trigger_id: str, identity: _Identity | None, settings: Settings
    ) -> Iterator[Trigger]:
        """The binding, where nothing that it needs has a problem."""
        if identity is None or settings.handler is None:
            return
        binding = Binding(
            package=self._package,
            trigger_id=trigger_id,
            kind=identity.kind,
            provider=identity.provider,
            events=identity.events,
            handler=settings.handler,
            when=settings.when,
            filter=settings.filter,
            dedupe_key=settings.dedupe_key,
            retry=settings.retry or RetryPolicy(),
            priority=settings.priority or "normal",
            timeout_ms=settings.timeout_ms or DEFAULT_TIMEOUT_MS,
            allow_cleartext=bool(settings.allow_cleartext),
            follow=None if settings.agent is None else settings.agent.follow,
            bearer_env=settings.bearer_env,
            gates=Gates.model_validate(settings.gates) if settings.gates else None,
            fingerprint="",
        )
        yield Trigger(fingerprinted(binding), settings.kept)


def _read_identity(table: Table) -> _Identity | None:
    if not table.has("kind"):
        table.wrong("kind", ", ".join(f'"{kind}"' for kind in KINDS))
    kind = table.choice("kind", KINDS)
    provider = table.required_text("provider", 'the name of a provider, such as "github"')
    if not table.has("match"):
        table.wrong("match", 'a table such as { events = ["issues.opened"] }; {} matches all')
    match = table.table("match")
    if match is None:
        return None
    events = match.texts("events", "an array of event kinds") or ()
    match.close()
    if kind is None or provider is None:
        return None
    return _Identity(kind, provider, events)
