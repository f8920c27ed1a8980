import subprocess
import sys

import harn_temporal
from harn_temporal.context import HandlerContext
from harn_temporal.errors import Denied, Waiting
from harn_temporal.events import TriggerEvent


def test_what_a_handler_may_import():
    assert harn_temporal.__all__ == ["Denied", "HandlerContext", "TriggerEvent", "Waiting"]
    assert harn_temporal.__all__ == sorted(harn_temporal.__all__)
    assert [getattr(harn_temporal, name) for name in harn_temporal.__all__] == [
        Denied,
        HandlerContext,
        TriggerEvent,
        Waiting,
    ]
    assert set(harn_temporal.__all__) <= set(dir(harn_temporal))
    assert not hasattr(harn_temporal, "Nothing")


def test_importing_the_package_loads_the_standard_library_only():
    code = (
        "import sys; before = set(sys.modules); import harn_temporal; "
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(new - sys.stdlib_module_names), 'asyncio' in new)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "['harn_temporal'] False"
