"""`harn-temporal a2a probe`: what it reports, and that it sends no message."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harn_temporal.a2a.probe import probe


async def test_what_would_be_spoken(sdk_agent, client, peer_at):
    agent = sdk_agent("1.0")
    report = await probe(client, peer_at(agent.authority))
    shown = report.to_json()
    assert shown["ok"]
    assert shown["refused"] is None
    assert shown["tried"][-1] == {
        "url": f"http://{agent.authority}/.well-known/agent-card.json",
        "outcome": "found",
    }
    assert (shown["card"]["name"], shown["card"]["skills"]) == ("Reviewer", ["Triage"])
    assert shown["spoken"] == {
        "url": f"http://{agent.authority}/rpc",
        "protocol_version": "1.0",
        "method": "SendMessage",
    }
    assert agent.bodies == []


async def test_why_something_is_refused(client, peer_at, scripted, scripts):
    def card(url):
        return {
            "name": "R",
            "supportedInterfaces": [
                {"url": "http://10.0.0.1/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
                {"url": url, "protocolBinding": "GRPC", "protocolVersion": "1.0"},
            ],
            "url": url,
            "preferredTransport": "JSONRPC",
            "protocolVersion": "0.3.0",
        }

    agent = await scripted(scripts.agent(lambda _: b"", card))
    report = await probe(client, peer_at(agent.authority))
    shown = report.to_json()
    assert not shown["ok"]
    assert "points to http://10.0.0.1/" in shown["refused"]
    verdicts = {(i["transport"], i["protocol_version"]): i["verdict"] for i in shown["interfaces"]}
    assert verdicts["JSONRPC", "1.0"].startswith("refused: the agent card at")
    assert verdicts["GRPC", "1.0"] == "not spoken here"
    assert verdicts["JSONRPC", "0.3.0"].endswith("but the one that goes first is refused")
    assert agent.calls == []


@pytest.mark.parametrize("as_json", [True, False])
async def test_the_command(*, as_json, sdk_agent, tmp_path: Path):
    agent = sdk_agent("0.3")
    target = f"a2a://{agent.authority}/triage"
    arguments = ["a2a", "probe", target, "--allow-cleartext", *(["--json"] if as_json else [])]
    ran = run(arguments, tmp_path)
    assert ran.returncode == 0, ran.stderr
    if as_json:
        assert json.loads(ran.stdout)["spoken"]["protocol_version"] == "0.3.0"
    else:
        assert "message/send of protocol 0.3.0" in ran.stdout
    refused = run(["a2a", "probe", target], tmp_path)
    assert refused.returncode == 1
    assert "Refused" in refused.stdout
    assert agent.bodies == []
    wrong = run(["a2a", "probe", "http://x"], tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "write a2a://host[:port]/path" in wrong.stderr


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("harn-temporal")
    return subprocess.run(
        [program, *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


async def test_an_agent_without_tls_is_told_from_one_that_is_away(client, peer_at, sdk_agent):
    agent = sdk_agent("1.0")
    report = await probe(client, peer_at(agent.authority, allow_cleartext=False))
    assert "allow_cleartext = true" in report.refused
