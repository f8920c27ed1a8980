"""Circuits of destinations: one that keeps failing gets no new dispatch for a while.

`FAILURES` in a row open it for `OPEN_MS`. Then one dispatch at a time is let through, to try: any
success closes it, any failure opens it again. A dispatch asks before its first attempt only, so
one that has begun never ends here, though what comes of its attempts counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from harn_temporal.canonical import clean_text
from harn_temporal.eventlog.circuits import StoredCircuit
from harn_temporal.eventlog.log import Transaction
from harn_temporal.eventlog.records import Append
from harn_temporal.eventlog.topics import circuit_topic
from harn_temporal.gates.decisions import Said
from harn_temporal.headers import HOLDER, PERMIT_ID

FAILURES = 5
OPEN_MS = 60_000


class CircuitAnswer(Said):
    """`closed` and `probe` let a dispatch begin; `open` sends it to the dead letters.

    `until_ms` is when an open one is tried again, as far as is known, and else 0.
    """

    destination: str
    state: Literal["closed", "probe", "open"]
    until_ms: int = 0


def ask_circuit(tx: Transaction, destination: str, holder: str, *, ttl_ms: int) -> CircuitAnswer:
    """Before the first attempt. A probe that says nothing for `ttl_ms` makes room for another.

    Asking again gives a probe the same answer while it is the probe.
    """
    circuit, holder = tx.circuits.get(destination), clean_text(holder)
    if not circuit.open_until_ms:
        return CircuitAnswer(destination=destination, state="closed")
    if circuit.probe == holder:
        return CircuitAnswer(destination=destination, state="probe")
    if tx.now_ms < circuit.open_until_ms:
        until_ms = circuit.open_until_ms
        return CircuitAnswer(destination=destination, state="open", until_ms=until_ms)
    if circuit.probe and tx.now_ms < circuit.probe_until_ms:
        until_ms = circuit.probe_until_ms
        return CircuitAnswer(destination=destination, state="open", until_ms=until_ms)
    probing = replace(circuit, probe=holder, probe_until_ms=tx.now_ms + ttl_ms)
    tx.append([_record("circuit_probe", probing, holder)])
    return CircuitAnswer(destination=destination, state="probe")


def tell_circuit(
    tx: Transaction, destination: str, holder: str, attempt: int, *, failed: bool
) -> Literal["opened", "closed"] | None:
    """After an attempt: `failed` is a failure that is worth a retry. Returns what changed.

    Any other end shows that the destination answers. The same attempt counts once.
    """
    circuit, holder = tx.circuits.get(destination), clean_text(holder)
    if not failed:
        if circuit == StoredCircuit(circuit.destination):
            return None
        tx.append([_record("circuit_closed", StoredCircuit(circuit.destination), holder)])
        return "closed" if circuit.open_until_ms else None
    if circuit.open_until_ms and tx.now_ms < circuit.open_until_ms and circuit.probe != holder:
        return None  # it is open, by others before: that is no news
    failures = circuit.failures + 1
    opens = failures >= FAILURES
    counted = StoredCircuit(circuit.destination, failures, tx.now_ms + OPEN_MS if opens else 0)
    key = f"circuit/{circuit.destination}/{holder}/{attempt}"
    record = _record("circuit_opened" if opens else "circuit_failure", counted, holder)
    return "opened" if tx.append([record], key=key).fresh and opens else None


def leave_probes(tx: Transaction, holder: str) -> None:
    """Of a dispatch that is gone: others may try in its place."""
    tx.append(
        [
            _record("circuit_probe_left", replace(each, probe="", probe_until_ms=0), holder)
            for each in tx.circuits.probed_by(holder)
        ]
    )


def _record(kind: str, circuit: StoredCircuit, holder: str) -> Append:
    """It says how the circuit stands from now on."""
    return Append(
        circuit_topic(circuit.destination),
        kind,
        {
            "destination": circuit.destination,
            "failures": circuit.failures,
            "open_until_ms": circuit.open_until_ms,
            "probe": circuit.probe,
            "probe_until_ms": circuit.probe_until_ms,
        },
        {HOLDER: holder, PERMIT_ID: ""},
    )
