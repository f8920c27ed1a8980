"""What a dispatch asks a gate, and what it is told. All of it may travel through a workflow."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from harn_temporal.canonical import clean_text
from harn_temporal.contracts import EventAddress
from harn_temporal.gates.models import GateKind

CleanText = Annotated[str, AfterValidator(clean_text)]


class Said(BaseModel):
    model_config = ConfigDict(frozen=True)


class Asker(Said):
    """A dispatch at a gate. Asking again gives the same answer, or the one that follows.

    `holder` is the id of its workflow, which is signalled; `permit_id` a UUID of its own.
    """

    holder: CleanText
    permit_id: str
    ttl_ms: int = Field(gt=0)
    """How long a permit holds unless it is renewed."""
    rank: int = 0
    """The place among waiters by priority: 0 goes first."""
    arrived_at_ms: int | None = None
    """When it asked first, as `Permit.arrived_at_ms` said: after a permit was given back it then
    stands before who came later. None for the store's clock."""
    event_id: str = ""
    address: EventAddress | None = None
    """Where its event lies; a batch needs it."""


class Permit(Said):
    kind: GateKind
    gate: str
    gate_id: str
    permit_id: str
    arrived_at_ms: int
    expires_at_ms: int


class Wake(Said):
    """Another dispatch that waits, and need not wait any longer: signal its workflow to ask again.

    A signal that is lost loses nothing: it asks again by its timer.
    """

    holder: str
    kind: GateKind
    gate: str
    granted: bool
    """False where it will be told to skip."""


class Granted(Said):
    """It may go on. `permit` is what it holds, where the gate is one that is held.

    `batch` is the record that names the members of its batch, for `batch_members`.
    """

    verdict: Literal["granted"] = "granted"
    permit: Permit | None = None
    batch: EventAddress | None = None
    count: int = 0
    """Members of the batch."""
    wakes: tuple[Wake, ...] = ()


class Wait(Said):
    """Ask again at `until_ms` of the store's clock, or when signalled before."""

    verdict: Literal["wait"] = "wait"
    kind: GateKind
    gate: str
    until_ms: int
    now_ms: int
    """The store's clock when it answered; `until_ms - now_ms` is the timer to set."""
    position: int | None = None
    """Its place among those that wait, from 1; None where it does not count, or is far behind."""
    waiting: int = 0
    wakes: tuple[Wake, ...] = ()


class Skip(Said):
    """Nothing comes of the dispatch; `detail` is for the `dispatch_skipped` record."""

    verdict: Literal["skip"] = "skip"
    detail: dict[str, str | int | None]
    wakes: tuple[Wake, ...] = ()


Decision = Annotated[Granted | Wait | Skip, Field(discriminator="verdict")]


class Passage(Said):
    """How far a dispatch came: `passed` gates, and what the next one said; None after the last."""

    passed: int
    stopped: Decision | None = None
    permits: tuple[Permit, ...] = ()
    batch: EventAddress | None = None
    wakes: tuple[Wake, ...] = ()
