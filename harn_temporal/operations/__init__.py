"""What an operator does to dispatches: cancel, replay, and what becomes of dead letters.

Everything here reads and appends records; none of it needs Temporal. Each run is in the audit
topic, a dry run too.
"""
