"""Making the projections anew: into tables of a new generation, in batches, then swapped."""

from __future__ import annotations

from harn_temporal.eventlog.projections import (
    BATCH_RECORDS,
    Budget,
    Folding,
    begin_caught_up,
    create_tables,
    current_version,
    projections_of,
)
from harn_temporal.eventlog.session import Session


class Rebuild:
    """Each step is one short transaction, so that others append in between.

    Hold the backend's rebuild lock throughout: then every generation that is neither live nor
    this one was left by somebody who was killed.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._generation = 0
        self._folded: dict[str, int] = {}

    def begin(self) -> None:
        session = self._session
        session.begin(write=True)
        try:
            session.run("generations.add", version=current_version())
            self._generation = session.rows("generations.newest")[0][0]
            session.generation = self._generation
            create_tables(session)
            session.commit()
        except BaseException:
            session.rollback()
            raise

    def step(self) -> bool:
        """Fold a batch; when what is left fits into it, swap and return True."""
        session = self._session
        begin_caught_up(session)
        try:
            session.generation = self._generation
            folding = Folding(session)
            done = self._fold_some(folding)
            folding.finish()
            if done:
                session.run("generations.retire")
                session.run("generations.enliven", generation=self._generation)
            session.commit()
        except BaseException:
            session.rollback()
            raise
        return done

    def sweep(self) -> bool:
        """Drop some of what no generation uses any more; True when nothing is left to drop."""
        session = self._session
        session.begin(write=True)
        try:
            idle = session.rows("generations.idle")
            if idle and session.drop_some(idle[0][0], BATCH_RECORDS):
                session.run("generations.forget", generation=idle[0][0])
            session.commit()
        except BaseException:
            session.rollback()
            raise
        return not idle

    def _fold_some(self, folding: Folding) -> bool:
        budget = Budget()
        for head in self._session.topics(""):
            if not projections_of(head.topic):
                continue
            while self._folded.get(head.topic, 0) < head.last_id:
                if not budget.left:
                    return False
                records = self._session.read(
                    head.topic, self._folded.get(head.topic, 0), min(budget.left, _PAGE)
                )
                for record in records:
                    folding.fold(record)
                    self._folded[head.topic] = record.event_id
                    budget.spend()
                if not records:
                    break  # the last records of the topic were deleted
        return True


_PAGE = 50
"""Records read at once: they may be large, and the budget of time is looked at in between."""
