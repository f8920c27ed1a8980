"""`harn-temporal a2a`: remote agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harn_temporal.cli.options import JsonOption, common_options

if TYPE_CHECKING:
    from harn_temporal.a2a.probe import ProbeReport

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def a2a() -> None:
    """Remote agents that speak A2A.

    Example: harn-temporal a2a probe a2a://reviewer.prod/triage
    """


@app.command("probe")
def probe_target(
    ctx: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="An agent, as in a2a://host[:port]/path")
    ],
    *,
    allow_cleartext: Annotated[
        bool,
        typer.Option("--allow-cleartext", help="As a binding that says allow_cleartext = true"),
    ] = False,
    bearer_env: Annotated[
        str | None,
        typer.Option(
            "--bearer-env",
            metavar="NAME",
            help="The environment variable that holds the agent's token",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what an agent offers, what would be spoken, and why something is refused.

    It reads the agent's card and sends no message. Exit code 1 where a dispatch would not get
    through.

    Example: harn-temporal a2a probe a2a://reviewer.prod/triage
    """
    import asyncio

    from harn_temporal.a2a.client import A2aClient, Peer
    from harn_temporal.a2a.probe import probe
    from harn_temporal.a2a.target import AgentTarget
    from harn_temporal.cli.output import print_json

    common_options(ctx)
    peer = Peer(AgentTarget.parse(target), allow_cleartext=allow_cleartext, bearer_env=bearer_env)
    report = asyncio.run(probe(A2aClient(), peer))
    if as_json:
        print_json(report.to_json())
    else:
        _print(report)
    if report.refused is not None:
        raise typer.Exit(1)


def _print(report: ProbeReport) -> None:
    from harn_temporal.cli.tables import Column, console_for_people, print_fields, print_table

    console = console_for_people()
    looked = [Column("Looked for a card at"), Column("Outcome", cut=True)]
    print_table(looked, report.tried, console)
    card = report.card
    if card is not None:
        console.print()
        fields = [
            ("Agent", f"{card.name} {card.version}".strip()),
            ("Description", card.description),
            ("Skills", ", ".join(card.skills)),
        ]
        print_fields([(name, value) for name, value in fields if value], console)
        console.print()
        print_table(
            [Column("Interface"), Column("Transport"), Column("Protocol"), Column("Verdict")],
            [
                (offer.url, offer.transport, offer.version, verdict)
                for offer, verdict in report.offers
            ],
            console,
        )
    said = report.to_json()["spoken"]
    console.print()
    if said is not None:
        verdict = f"{said['method']} of protocol {said['protocol_version']} at {said['url']}"
        print_fields([("Would be spoken", verdict)], console)
    if report.refused is not None:
        print_fields([("Refused", report.refused)], console)
