"""The files of an embedded server, in `<state-dir>/temporal/`.

clients.lock     held shared by every process that uses the server
start.lock       held by the one process that starts or stops something
supervisor.lock  held by the detached supervisor; its pid is the content
server.lock      held by the server through a descriptor it inherits; its pid is the content
server.json      where the server answers; true while supervisor.lock is held
server.log       what supervisor and server print

Locks say what runs, never the mere existence of a file, so nothing here can be stale.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

LOG_TAIL_LINES = 12


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """A running embedded server: gRPC port, Web UI port (both on 127.0.0.1) and pid."""

    port: int
    ui_port: int
    pid: int

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def ui_url(self) -> str:
        return f"http://127.0.0.1:{self.ui_port}"


class EmbeddedFiles:
    """Paths below a state dir, which is made absolute here."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir.absolute()
        self.directory = self.state_dir / "temporal"
        self.clients_lock = self.directory / "clients.lock"
        self.start_lock = self.directory / "start.lock"
        self.supervisor_lock = self.directory / "supervisor.lock"
        self.server_lock = self.directory / "server.lock"
        self.server_json = self.directory / "server.json"
        self.log = self.directory / "server.log"

    def read_info(self) -> ServerInfo | None:
        try:
            fields = json.loads(self.server_json.read_text("utf-8"))
            return ServerInfo(int(fields["port"]), int(fields["ui_port"]), int(fields["pid"]))
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None  # absent, or not ours: the supervisor writes it anew

    def write_info(self, info: ServerInfo) -> None:
        fresh = self.server_json.with_suffix(".new")
        fresh.write_text(json.dumps({**asdict(info), "address": info.address, "ui": info.ui_url}))
        fresh.replace(self.server_json)

    def drop_info(self) -> None:
        self.server_json.unlink(missing_ok=True)

    def server_pid(self) -> int | None:
        """The content of server.lock: the pid of its holder, who writes it after locking."""
        return _pid_in(self.server_lock)

    def supervisor_pid(self) -> int | None:
        return _pid_in(self.supervisor_lock)

    def log_tail(self) -> str:
        try:
            text = self.log.read_text("utf-8", errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-LOG_TAIL_LINES:]) or "(nothing; is the disk full?)"

    def open_log(self, *, anew: bool) -> int:
        """A descriptor that appends to the log, emptied first where it begins `anew`."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if anew else 0)
        return os.open(self.log, flags, 0o600)


def _pid_in(path: Path) -> int | None:
    try:
        return int(path.read_text("ascii"))
    except (FileNotFoundError, ValueError):
        return None
