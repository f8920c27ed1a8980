import os
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the source tree."""
    return Path(__file__).parents[2]


@pytest.fixture(scope="session")
def user_environment() -> dict[str, str]:
    """A shell in which harn-temporal is installed and nothing of it is configured."""
    ours = ("HARN_", "TEMPORAL_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return kept | {"PATH": path, "COLUMNS": "200"}
