"""Every relative link of the documentation leads to a file, and to a heading that exists."""

import re
from pathlib import Path

import pytest

FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def pages(root: Path) -> list[Path]:
    return [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("examples/*/*.md")]


def anchors(page: Path) -> set[str]:
    """The ids that a forge gives to a page's headings."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def broken(page: Path) -> list[str]:
    found = []
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


def test_relative_links_resolve(root: Path) -> None:
    found = {page.relative_to(root).as_posix(): broken(page) for page in pages(root)}
    assert {page: links for page, links in found.items() if links} == {}
    assert "README.md" in found
    assert "docs/concepts.md" in found


@pytest.mark.parametrize("link", ["missing.md", "page.md#no-such-heading", "#nor-this"])
def test_a_broken_link_is_found(tmp_path: Path, link: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A heading\n\n[good](page.md#a-heading) [bad]({link})\n")
    assert broken(page) == [link]


def test_readme_lists_every_page(root: Path) -> None:
    readme = (root / "README.md").read_text()
    names = [f"docs/{page.name}" for page in (root / "docs").glob("*.md")]
    assert [name for name in names if f"]({name})" not in readme] == []
