"""`harn-temporal gate`: flow-control gates, who holds them, and who waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harn_temporal.cli.options import JsonOption, common_options
from harn_temporal.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from harn_temporal.eventlog.circuits import StoredCircuit
    from harn_temporal.eventlog.log import EventLog, Reader, Transaction

app = typer.Typer(help="Flow-control gates: who holds them, who waits, and for how long.")

Kind = Literal["batch", "debounce", "rate_limit", "throttle", "singleton", "concurrency"]
GateArgument = Annotated[
    str, typer.Argument(metavar="GATE", help="A gate's name, as `gate ls` shows it")
]
KindOption = Annotated[Kind | None, typer.Option("--kind", help="Only gates of this kind")]
DESTINATION = "a2a://"
MOST_GATES = 10_000


@app.callback(invoke_without_command=True)
def gate(ctx: typer.Context) -> None:
    """Flow-control gates. Without a command it lists them.

    Example: harn-temporal gate ls
    """
    if ctx.invoked_subcommand is None:
        list_gates(ctx)


@app.command("ls")
def list_gates(
    ctx: typer.Context,
    *,
    kind: KindOption = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=MOST_GATES, help="The most gates")
    ] = 200,
    as_json: JsonOption = False,
) -> None:
    """List the gates in use, and the circuits of destinations that failed.

    Example: harn-temporal gate ls --kind concurrency
    """
    from harn_temporal.cli.gate_lines import print_gates
    from harn_temporal.cli.output import print_json
    from harn_temporal.cli.reading import reading
    from harn_temporal.inspection.gates import gates_and_circuits

    async def look(log: EventLog) -> dict[str, Any]:
        return await log.query(lambda reader: gates_and_circuits(reader, kind, limit))

    found = reading(common_options(ctx), look)
    if as_json:
        print_json(found)
    else:
        print_gates(found)


@app.command("show")
def show_gate(
    ctx: typer.Context, name: GateArgument, *, kind: KindOption = None, as_json: JsonOption = False
) -> None:
    """Show who holds a gate and who waits at it, in the order of their turns.

    For an a2a:// URI it shows the circuit.

    Example: harn-temporal gate show new-issue@v1:acme
    """
    from harn_temporal.cli.gate_lines import print_gate, print_gates
    from harn_temporal.cli.output import print_json
    from harn_temporal.cli.reading import reading
    from harn_temporal.inspection.gates import circuit_view, detailed_view, named_gates

    def find(reader: Reader) -> dict[str, Any]:
        if name.startswith(DESTINATION):
            circuit = circuit_view(_failing(reader, name), reader.now_ms)
            return {"gates": [], "circuits": [circuit]}
        gates = [detailed_view(reader, each) for each in named_gates(reader, name, kind)]
        return {"gates": gates, "circuits": []}

    async def look(log: EventLog) -> dict[str, Any]:
        return await log.query(find)

    found = reading(common_options(ctx), look)
    if as_json:
        print_json(found)
        return
    for view in found["gates"]:
        print_gate(view)
    if found["circuits"]:
        print_gates(found)


@app.command("release")
def release_gate(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="GATE", help="A gate's name, or the a2a:// URI of a circuit")
    ],
    *,
    holder: Annotated[
        str | None, typer.Option("--holder", metavar="ID", help="Only from this dispatch")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="From everyone who holds it")] = False,
    kind: KindOption = None,
    reason: Annotated[str | None, typer.Option("--reason", metavar="R", help="Why")] = None,
    as_json: JsonOption = False,
) -> None:
    """Take permits back, so that others go on; the dispatch that had one is not stopped.

    With --holder also the place of one who waits. For an a2a:// URI it closes the circuit.

    Example: harn-temporal gate release new-issue@v1:acme --all --reason "its host is gone"
    """
    from harn_temporal.cli.output import line, note, print_json
    from harn_temporal.cli.reading import reading
    from harn_temporal.operations.audit import operator_name

    by = operator_name() or "an operator"
    why = f"released by {by}" + (f": {reason}" if reason else "")
    if not name.startswith(DESTINATION) and (holder is None) == (not every):
        raise UsageError("say whose permit: --holder ID, or --all for everyone's")

    def work(tx: Transaction) -> dict[str, Any]:
        if name.startswith(DESTINATION):
            return _close(tx, name)
        return _take(tx, name, kind, holder, why)

    async def act(log: EventLog) -> dict[str, Any]:
        return await log.transact(work)

    found = reading(common_options(ctx), act)
    if as_json:
        print_json(found)
    elif "destination" in found:
        line(f"Closed the circuit of {name}.")
    else:
        for each in found["released"]:
            line(f"Took its place at the {each['kind']} gate {name} from {each['holder']}.")
        if found["granted"]:
            note("Whoever has its turn now goes on as soon as a worker of the store sees it.")


def _take(
    tx: Transaction, name: str, kind: str | None, holder: str | None, why: str
) -> dict[str, Any]:
    from harn_temporal.gates.leaving import abandon
    from harn_temporal.inspection.gates import SHOWN, named_gates

    released: list[dict[str, str]] = []
    granted: list[str] = []
    for each in named_gates(tx, name, kind):
        if holder is None:
            holders = [permit.holder for permit in tx.gates.permits(each.gate, SHOWN)]
        else:
            there = tx.gates.permit(each.gate, holder) or tx.gates.waiter(each.gate, holder)
            holders = [holder] if there else []
        for one in holders:
            granted += [wake.holder for wake in abandon(tx, one, reason=why, gate=each)]
            released.append({"kind": each.kind, "holder": one})
    if not released:
        whose = "nobody holds" if holder is None else f"{holder!r} neither holds nor waits at"
        raise NotFoundError(f"{whose} the gate {name!r}")
    return {"gate": name, "released": released, "granted": granted, "reason": why}


def _close(tx: Transaction, destination: str) -> dict[str, Any]:
    from harn_temporal.gates.circuit import tell_circuit
    from harn_temporal.inspection.gates import circuit_view

    before = _failing(tx, destination)
    tell_circuit(tx, destination, "an operator", 0, failed=False)
    return {"destination": destination, "was": circuit_view(before, tx.now_ms)["state"]}


def _failing(reader: Reader, destination: str) -> StoredCircuit:
    found = reader.circuits.get(destination)
    if not found.failures:
        raise NotFoundError(f"the circuit of {destination!r} is closed: nothing failed there")
    return found
