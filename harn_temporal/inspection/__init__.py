"""What the EventLog holds, read for people and programs. Nothing here appends."""
