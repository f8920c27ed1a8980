"""The tests on the page docs/testing.md pass, on the example that it speaks of."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page(tmp_path: Path) -> None:
    for name in ("harn.toml", "lib.py", "issues.opened.json"):
        shutil.copy(ROOT / "examples/github-triage" / name, tmp_path)
    blocks = BLOCK.findall((ROOT / "docs/testing.md").read_text())
    (tmp_path / "test_page.py").write_text("\n".join(blocks))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert "2 passed" in done.stdout, done.stdout + done.stderr
