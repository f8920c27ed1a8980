"""What pip puts into site-packages from the built wheel, and that it runs from there."""

import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def package_files(root: Path) -> set[str]:
    """Every file of the package, those behind the two links included."""
    tops = (
        root / "harn_temporal",
        root / "harn_temporal/workflows",
        root / "harn_temporal/activities",
    )
    return {
        path.relative_to(root).as_posix()
        for top in tops
        for path in top.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def version(root: Path) -> str:
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, root)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own that holds nothing but what pip made of the wheel."""
    environment = tmp_path_factory.mktemp("environment")
    python = environment / "bin/python"
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    run(
        sys.executable, "-m", "pip", "-q", "--python", python,
        "install", "--no-deps", "--no-index", wheel,
    )  # fmt: skip
    return environment


def site_packages(environment: Path) -> Path:
    (folder,) = environment.glob("lib/python*/site-packages")
    return folder


@pytest.fixture(scope="module")
def runnable(installed: Path) -> Path:
    """The same environment, with the dependencies of this one in reach behind it.

    A folder named by a .pth file is searched, its own .pth files are not read: so the editable
    install of this environment stays out of sight.
    """
    behind = site_packages(installed) / "dependencies.pth"
    behind.write_text(sysconfig.get_path("purelib") + "\n")
    return installed


def test_installs_the_package_and_its_metadata_only(installed: Path, version: str) -> None:
    names = {path.name for path in site_packages(installed).iterdir()} - {"dependencies.pth"}
    assert names == {"harn_temporal", f"harn_temporal-{version}.dist-info"}


def test_holds_every_file_of_the_package(root: Path, wheel: Path, version: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    metadata = f"harn_temporal-{version}.dist-info/"
    assert {name for name in names if not name.startswith(metadata)} == package_files(root)
    assert "harn_temporal/py.typed" in names
    assert f"{metadata}licenses/LICENSE" in names


@pytest.mark.parametrize("folder", ["workflows", "activities"])
def test_linked_folders_arrive_as_real_files(root: Path, installed: Path, folder: str) -> None:
    arrived = site_packages(installed) / "harn_temporal" / folder
    assert not arrived.is_symlink()
    expected = {path.name for path in (root / folder).glob("*.py")}
    assert expected
    assert {path.name for path in arrived.glob("*.py") if not path.is_symlink()} == expected


def test_sql_arrives(installed: Path) -> None:
    package = site_packages(installed) / "harn_temporal"
    assert list((package / "eventlog/sql/sqlite/migrations").glob("*.sql"))


def test_program_runs_from_the_wheel(runnable: Path, version: str) -> None:
    where = run(
        runnable / "bin/python", "-P", "-c", "import harn_temporal; print(harn_temporal.__file__)"
    )
    assert Path(where.strip()).is_relative_to(runnable)
    assert "Usage: harn-temporal" in run(runnable / "bin/harn-temporal", "--help")
    assert version in run(runnable / "bin/harn-temporal", "--version")


def test_source_distribution_has_no_links(root: Path, built: Path, version: str) -> None:
    with tarfile.open(built / f"harn_temporal-{version}.tar.gz") as archive:
        members = archive.getmembers()
    assert [member.name for member in members if not member.isfile()] == []
    names = {member.name.partition("/")[2] for member in members}
    assert package_files(root) <= names
    assert {"README.md", "LICENSE", "Makefile", "constraints.txt", "docs/cli.md"} <= names


def test_wheel_of_the_tree_is_the_same(root: Path, wheel: Path, tmp_path: Path) -> None:
    """`pip install .` builds it so, without a source distribution in between."""
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, root)
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(tmp_path / wheel.name) as second:
        assert sorted(first.namelist()) == sorted(second.namelist())
