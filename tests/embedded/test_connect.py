"""Which service a command talks to, and what it says where none answers."""

from __future__ import annotations

import socket
import time

import pytest

from harn_temporal.errors import TemporalUnavailableError, UsageError
from harn_temporal.temporal import connect as connecting
from harn_temporal.temporal.connect import TemporalOptions, connect, service_configuration


@pytest.fixture(autouse=True)
def configuration_file(monkeypatch, tmp_path):
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE", "TEMPORAL_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "temporal.toml"
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(path))
    return path


def test_nothing_configured_means_the_embedded_server():
    assert service_configuration(TemporalOptions()) is None


def test_the_environment_names_a_service(monkeypatch):
    monkeypatch.setenv("TEMPORAL_ADDRESS", "temporal.example:7233")
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "triggers")

    assert service_configuration(TemporalOptions()) == {
        "target_host": "temporal.example:7233",
        "namespace": "triggers",
    }


def test_an_address_on_the_command_line_wins_and_keeps_the_rest(monkeypatch):
    monkeypatch.setenv("TEMPORAL_ADDRESS", "temporal.example:7233")
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "triggers")

    found = service_configuration(TemporalOptions(address="localhost:1"))

    assert found == {"target_host": "localhost:1", "namespace": "triggers"}


def test_a_namespace_without_address_is_one_of_the_default_address(monkeypatch):
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "triggers")

    assert service_configuration(TemporalOptions()) == {
        "target_host": "localhost:7233",
        "namespace": "triggers",
    }


def test_a_profile_is_read_from_the_file(configuration_file):
    configuration_file.write_text('[profile.prod]\naddress = "prod.example:7233"\n')

    found = service_configuration(TemporalOptions(profile="prod"))

    assert found == {"target_host": "prod.example:7233"}


def test_a_profile_that_is_missing_is_wrong_usage(configuration_file):
    configuration_file.write_text('[profile.prod]\naddress = "prod.example:7233"\n')

    with pytest.raises(UsageError, match="'staging' not found"):
        service_configuration(TemporalOptions(profile="staging"))


def test_a_broken_file_is_wrong_usage(configuration_file):
    configuration_file.write_text("[profile")

    with pytest.raises(UsageError, match="TEMPORAL_CONFIG_FILE"):
        service_configuration(TemporalOptions())


async def test_where_nothing_answers_the_message_names_the_address(tmp_path, monkeypatch):
    monkeypatch.setattr(connecting, "CONNECT_SECONDS", 0.3)
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(TemporalUnavailableError) as caught:
            async with connect(TemporalOptions(address=address), tmp_path):
                pass

    assert address in str(caught.value)
    assert "temporal server start-dev" in str(caught.value)
    assert not list(tmp_path.glob("temporal/*")), "an embedded server was started"


async def test_a_service_that_accepts_and_never_answers_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(connecting, "CONNECT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        begun = time.monotonic()
        with pytest.raises(TemporalUnavailableError, match=address):
            async with connect(TemporalOptions(address=address), tmp_path):
                pass

    assert time.monotonic() - begun < 5


async def test_an_address_that_is_none_is_wrong_usage(tmp_path):
    with pytest.raises(UsageError, match="is no address"):
        async with connect(TemporalOptions(address="!!:x"), tmp_path):
            pass


async def test_a_namespace_that_does_not_exist_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(connecting, "CONNECT_SECONDS", 1.0)
    async with connect(TemporalOptions(), tmp_path) as connection:
        monkeypatch.setenv("TEMPORAL_NAMESPACE", "nowhere")
        with pytest.raises(TemporalUnavailableError, match="no namespace 'nowhere'"):
            async with connect(TemporalOptions(address=connection.address), tmp_path):
                pass


async def test_a_service_that_goes_away_is_unavailable_not_a_crash(tmp_path, monkeypatch):
    async with connect(TemporalOptions(), tmp_path) as embedded:
        elsewhere = TemporalOptions(address=embedded.address)
        with pytest.raises(TemporalUnavailableError, match="went away"):
            async with connect(elsewhere, tmp_path):
                raise connecting.RPCError("gone", connecting.RPCStatusCode.UNAVAILABLE, b"")
