"""One server for all clients of a state dir, and none once the last of them is gone."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from harn_temporal.errors import TemporalUnavailableError
from harn_temporal.temporal.embedded import embedded_server, running_server
from harn_temporal.temporal.locks import LockFile, is_held
from harn_temporal.temporal.server_process import _listens


def test_clients_at_once_share_one_server_and_the_last_one_out_stops_it(
    files, start_client, eventually, alive
):
    clients = [start_client() for _ in range(4)]
    joined = [client.joined for client in clients]

    assert joined == [joined[0]] * 4
    assert running_server(files.state_dir).pid == joined[0]["pid"]
    for client in clients[:3]:
        assert client.leave() == 0
    assert start_client().joined == joined[0], "a server in use was stopped"
    assert alive(joined[0]["pid"])

    clients[3].kill()
    start_client().joined  # noqa: B018 - waits for the next one
    assert alive(joined[0]["pid"])


def test_the_server_stops_when_its_only_client_leaves(files, start_client, eventually, alive):
    client = start_client()
    server = client.joined

    assert client.leave() == 0

    eventually(lambda: not alive(server["pid"]))
    eventually(lambda: running_server(files.state_dir) is None)
    assert not files.server_json.exists()


async def test_a_database_that_is_none_is_named(files):
    files.directory.mkdir(parents=True)
    database = files.state_dir / "temporal.sqlite"
    database.write_bytes(b"not a database" * 400)

    with pytest.raises(TemporalUnavailableError) as refused:
        async with embedded_server(files.state_dir):
            pass

    assert f"Its database is {database}. Where that is damaged" in str(refused.value)
    assert database.read_bytes() == b"not a database" * 400


def test_a_killed_owner_leaves_no_server_and_blocks_nobody(files, start_client, eventually, alive):
    owner = start_client()
    server = owner.joined

    owner.kill()

    eventually(lambda: not alive(server["pid"]))
    assert alive(start_client().joined["pid"])


def test_a_client_killed_while_it_starts_the_server_blocks_nobody(
    files, start_client, eventually, alive
):
    starting = start_client()
    eventually(lambda: files.supervisor_lock.exists() and is_held(files.supervisor_lock))

    starting.kill()

    assert alive(start_client().joined["pid"])


def test_a_killed_owner_does_not_take_the_server_from_the_others(start_client, alive):
    owner = start_client()
    server = owner.joined
    other = start_client()
    assert other.joined == server

    owner.kill()

    assert start_client().joined == server
    assert alive(server["pid"])


def test_with_its_supervisor_killed_the_next_command_starts_anew_on_the_same_port(
    files, start_client, eventually, alive
):
    first = start_client()
    orphan = first.joined
    os.kill(files.supervisor_pid(), signal.SIGKILL)
    eventually(lambda: not is_held(files.supervisor_lock))
    assert alive(orphan["pid"]), "the server itself goes on"

    fresh = start_client().joined

    assert fresh["pid"] != orphan["pid"]
    assert fresh["port"] == orphan["port"], "the first client could not find it again"
    eventually(lambda: not alive(orphan["pid"]))


def test_with_its_supervisor_killed_the_last_client_stops_the_server(
    files, start_client, eventually, alive
):
    client = start_client()
    server = client.joined
    os.kill(files.supervisor_pid(), signal.SIGKILL)
    eventually(lambda: not is_held(files.supervisor_lock))

    assert client.leave() == 0

    eventually(lambda: not alive(server["pid"]))


def test_with_everyone_killed_the_next_command_ends_the_orphan(
    files, start_client, eventually, alive
):
    client = start_client()
    orphan = client.joined
    os.kill(files.supervisor_pid(), signal.SIGKILL)
    eventually(lambda: not is_held(files.supervisor_lock))
    client.kill()
    assert alive(orphan["pid"])

    fresh = start_client().joined

    assert fresh["pid"] != orphan["pid"]
    eventually(lambda: not alive(orphan["pid"]))


def test_a_killed_server_is_started_again_where_its_clients_look_for_it(
    files, start_client, eventually, alive
):
    server = start_client().joined

    os.kill(server["pid"], signal.SIGKILL)

    eventually(lambda: (info := files.read_info()) is not None and info.pid != server["pid"])
    again = running_server(files.state_dir)
    assert again.port == server["port"]
    eventually(lambda: _listens(again.port))
    assert start_client().joined == {"pid": again.pid, "port": again.port}


def test_a_server_that_cannot_live_is_given_up_and_the_next_command_works(
    files, start_client, eventually, alive
):
    client = start_client()
    for _ in range(4):
        eventually(lambda: (info := files.read_info()) is not None and alive(info.pid))
        pid = files.read_info().pid
        os.kill(pid, signal.SIGKILL)
        eventually(lambda pid=pid: (info := files.read_info()) is None or info.pid != pid)
    eventually(lambda: not is_held(files.supervisor_lock))
    assert "giving up" in files.log_tail()

    assert alive(start_client().joined["pid"])
    assert client.process.poll() is None


def test_a_supervisor_told_to_stop_takes_its_server_along(files, start_client, eventually, alive):
    client = start_client()
    server = client.joined

    os.kill(files.supervisor_pid(), signal.SIGTERM)

    eventually(lambda: not alive(server["pid"]))
    eventually(lambda: not is_held(files.supervisor_lock))
    assert client.process.poll() is None
    assert alive(start_client().joined["pid"])


async def test_files_left_by_others_block_nothing_and_hurt_no_innocent(files, alive):
    innocent = await asyncio.create_subprocess_exec("sleep", "120")
    try:
        files.directory.mkdir(parents=True)
        files.server_json.write_text('{"port": "x"')
        for lock in (files.server_lock, files.supervisor_lock, files.clients_lock):
            lock.write_text(str(innocent.pid))
        assert running_server(files.state_dir) is None

        async with embedded_server(files.state_dir) as server:
            assert alive(server.pid)
            assert files.server_pid() == server.pid
        assert innocent.returncode is None
    finally:
        innocent.kill()
        await innocent.wait()


def test_asking_for_a_lock_writes_nothing(tmp_path):
    lock = tmp_path / "some.lock"

    assert not is_held(lock)
    assert not lock.exists()
    with LockFile(lock) as own:
        assert not is_held(lock)
        assert own.try_exclusive()
        assert is_held(lock)


def test_a_log_without_a_word_says_so(files):
    files.directory.mkdir(parents=True, exist_ok=True)
    files.log.write_text("")

    assert files.log_tail() == "(nothing; is the disk full?)"
