"""Imports handler modules from a manifest's folder under names of their own.

Each folder becomes a private package: its `lib.py` is `_harn_handlers_1.lib` in `sys.modules`, and
`sys.path` stays as it is, so two manifests that both have a `lib.py` live in one process. What
the modules of the folder import from each other (`import helper`, even inside a function) is
looked up in that package first, by an `__import__` that only they see.
"""

from __future__ import annotations

import builtins
import importlib
import itertools
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

_PREFIX = "_harn_handlers_"
_numbers = itertools.count(1)


class HandlerFolder:
    """The private package of one folder. A new one reads every file anew."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._package = f"{_PREFIX}{next(_numbers)}"
        self._own: dict[str, bool] = {}
        importlib.invalidate_caches()  # else files written within this second may go unseen
        package = ModuleType(self._package)
        package.__path__ = [str(self.root)]
        package.__package__ = self._package
        sys.modules[self._package] = package
        _PrivateFinder.serve(self._package, self)

    def import_module(self, name: str) -> ModuleType:
        """The module with this dotted name below the folder, or else from the environment."""
        if self.owns(name):
            return importlib.import_module(f"{self._package}.{name}")
        return importlib.import_module(name)

    def owns(self, name: str) -> bool:
        """Whether the first part of a dotted name is a module or package of this folder."""
        top = name.partition(".")[0]
        if top not in self._own:
            self._own[top] = self._find(top)
        return self._own[top]

    def public_name(self, text: str) -> str:
        """`text` (an error message) without the private package's name."""
        return text.replace(f"{self._package}.", "")

    def names_private(self, name: str | None) -> bool:
        return name is not None and f"{name}.".startswith(f"{self._package}.")

    def builtins(self) -> dict[str, Any]:
        """The builtins that the modules of this folder see."""
        return {**vars(builtins), "__import__": self._import}

    def _find(self, top: str) -> bool:
        if (self.root / f"{top}.py").is_file() or (self.root / top / "__init__.py").is_file():
            return True
        if not (self.root / top).is_dir():
            return False
        # A folder without __init__.py yields to anything installed, as it does in Python.
        return top not in sys.modules and find_spec(top) is None

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the signature of __import__
        locals: Mapping[str, object] | None = None,  # noqa: A002 - the signature of __import__
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        if level or not self.owns(name):
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = builtins.__import__(f"{self._package}.{name}", globals, locals, fromlist or ())
        if fromlist:
            return module
        return sys.modules[f"{self._package}.{name.partition('.')[0]}"]


class _PrivateLoader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, folder: HandlerFolder) -> None:
        super().__init__(fullname, path)
        self._folder = folder

    def get_code(self, fullname: str) -> CodeType:
        """The code as the file has it now; no `__pycache__` is left in a user's folder."""
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = self._folder.builtins()
        super().exec_module(module)


class _PrivateFinder:
    """On `sys.meta_path`, and answers for names below private packages only."""

    _folders: dict[str, HandlerFolder]

    def __init__(self) -> None:
        self._folders = {}

    @classmethod
    def serve(cls, package: str, folder: HandlerFolder) -> None:
        _finder._folders[package] = folder
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        folder = self._folders.get(fullname.partition(".")[0])
        if folder is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _PrivateLoader(fullname, spec.loader.path, folder)
            spec.cached = None
        return spec


_finder = _PrivateFinder()
