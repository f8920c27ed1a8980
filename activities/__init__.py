"""Effects: handlers, predicates, the EventLog, and the pump that starts dispatches."""
