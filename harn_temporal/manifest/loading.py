"""A manifest, read from its file and checked in full."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harn_temporal.bindings import Binding
from harn_temporal.errors import HandlerLoadError, ManifestError
from harn_temporal.handlers import HandlerLoader
from harn_temporal.manifest.keys import UNUSED_ORCHESTRATOR_KEYS, UNUSED_SECTIONS
from harn_temporal.manifest.problems import Notes, Place, Problems
from harn_temporal.manifest.table import Table
from harn_temporal.manifest.toml_file import read_toml
from harn_temporal.manifest.triggers import TICKED_KINDS, TriggerReader

DEFAULT_MAX_OUTSTANDING = 64
MAX_OUTSTANDING_LIMIT = 100_000

_PACKAGE = re.compile(r"[A-Za-z0-9._-]{1,100}")
_PACKAGE_ALLOWED = (
    "1 to 100 characters of A-Z a-z 0-9 . _ -, since it names the Temporal task queue"
)
_OUTSTANDING = f"an integer from 1 to {MAX_OUTSTANDING_LIMIT}"


@dataclass(frozen=True)
class Manifest:
    """A manifest without a mistake. Its bindings have version 0 until a store registers them."""

    path: Path
    package: str
    bindings: tuple[Binding, ...]
    exports: Mapping[str, str]
    warnings: tuple[str, ...]
    max_outstanding: int
    handlers: HandlerLoader
    kept: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Keys that nothing uses yet, by trigger id; never part of a binding or its fingerprint."""

    def binding(self, trigger_id: str) -> Binding | None:
        return next((each for each in self.bindings if each.trigger_id == trigger_id), None)

    @property
    def tick_warning(self) -> str | None:
        """What `up` and `worker` say about triggers whose events nothing here makes."""
        waiting = [
            f"{each.trigger_id} ({each.kind})"
            for each in self.bindings
            if each.kind in TICKED_KINDS
        ]
        if not waiting:
            return None
        return (
            f"{self.path.name}: nothing ticks {', '.join(waiting)} yet; "
            "they run when an event is fired or ingested for them"
        )


def load_manifest(path: Path, *, load_handlers: bool = True) -> Manifest:
    """Read the manifest at `path`; raise ManifestError with all of its problems at once.

    With `load_handlers` the functions it names are imported and their signatures checked, which
    runs code of the manifest's folder. Warnings are for the caller to show.
    """
    return parse_manifest(read_toml(path), path, load_handlers=load_handlers)


def parse_manifest(
    document: Mapping[str, Any], path: Path, *, load_handlers: bool = True
) -> Manifest:
    """As `load_manifest`, from a document that was read from `path`."""
    problems, notes = Problems(), Notes()
    table = Table(document, Place(path.name), problems)
    package = _read_package(table, path)
    exports = _read_exports(table)
    max_outstanding = _read_orchestrator(table, notes)
    entries = _read_entries(table)
    notes.keep(sorted(f"[{key}]" for key in UNUSED_SECTIONS & document.keys()), "")
    table.close(UNUSED_SECTIONS)
    reader = TriggerReader(path.name, package or "", exports, problems, notes)
    triggers = tuple(reader.read(entries))
    handlers = HandlerLoader(path.absolute().parent, exports)
    if load_handlers:
        _load_functions(reader.functions, handlers, problems)
    if len(problems):
        raise ManifestError(str(path), problems.all())
    if not entries:
        notes.warnings.append(f"{path.name}: there are no [[triggers]], so nothing is dispatched")
    return Manifest(
        path=path,
        package=package or "",
        bindings=tuple(trigger.binding for trigger in triggers),
        exports=exports,
        warnings=(*notes.warnings, *_unused_warning(path.name, notes)),
        max_outstanding=max_outstanding,
        handlers=handlers,
        kept={each.binding.trigger_id: each.kept for each in triggers if each.kept},
    )


def _read_package(table: Table, path: Path) -> str | None:
    """`package.name`, or the folder's where there is no such table, as in Harn's own examples.

    The other keys of [package] are for Harn's package manager.
    """
    package = table.table("package")
    if package is None:
        if table.has("package"):
            return None
        folder = path.absolute().parent.name
        if _PACKAGE.fullmatch(folder):
            return folder
        table.problem(
            "package",
            f"missing, and the folder's name {folder!r} cannot stand for its name; allowed: a "
            f"table with a name, {_PACKAGE_ALLOWED}",
        )
        return None
    name = package.value("name")
    if isinstance(name, str) and _PACKAGE.fullmatch(name):
        return name
    package.wrong("name", _PACKAGE_ALLOWED)
    return None


def _read_exports(table: Table) -> dict[str, str]:
    exports = table.table("exports")
    if exports is None:
        return {}
    files = {name: exports.text(name, "a file or a dotted import path") for name in exports.values}
    # A module with a problem stays known, so that handlers which name it are not reported too.
    return {name: _as_python(file or "") for name, file in files.items()}


def _as_python(file: str) -> str:
    """Harn's own modules have a Python module of the same name beside them."""
    return f"{file.removesuffix('.harn')}.py" if file.endswith(".harn") else file


def _read_orchestrator(table: Table, notes: Notes) -> int:
    orchestrator = table.table("orchestrator")
    if orchestrator is None:
        return DEFAULT_MAX_OUTSTANDING
    pumps = orchestrator.table("pumps")
    unused = sorted(UNUSED_ORCHESTRATOR_KEYS & orchestrator.values.keys())
    notes.keep([f"orchestrator.{key}" for key in unused], "")
    orchestrator.close(UNUSED_ORCHESTRATOR_KEYS)
    if pumps is None:
        return DEFAULT_MAX_OUTSTANDING
    found = [
        pumps.integer(key, _OUTSTANDING, low=1, high=MAX_OUTSTANDING_LIMIT)
        for key in ("max_outstanding", "max-outstanding")  # the second is an alias of Harn's
    ]
    pumps.close()
    return found[0] or found[1] or DEFAULT_MAX_OUTSTANDING


def _read_entries(table: Table) -> list[dict[str, Any]]:
    if isinstance(table.values.get("triggers"), dict):
        table.value("triggers")
        table.problem("triggers", "found a table; write each trigger as [[triggers]]")
        return []
    return table.array_of_tables("triggers")


def _load_functions(
    functions: Iterable[tuple[str, str]], handlers: HandlerLoader, problems: Problems
) -> None:
    """Load each function once, and report what is wrong with it wherever it is named."""
    wrong: dict[str, str | None] = {}
    for place, name in functions:
        if name not in wrong:
            try:
                handlers.load(name)
                wrong[name] = None
            except HandlerLoadError as error:
                wrong[name] = str(error)
        if wrong[name] is not None:
            problems.add(f"{place}: {wrong[name]}")


def _unused_warning(file: str, notes: Notes) -> tuple[str, ...]:
    """One sentence for the whole manifest, or none."""
    if not notes.unused:
        return ()
    keys = []
    for key, owners in sorted(notes.unused.items()):
        named = ", ".join(dict.fromkeys(owner for owner in owners if owner))
        keys.append(f"{key} ({named})" if named else key)
    return (f"{file}: kept, but not used by this version: {'; '.join(keys)}",)
