"""Speaking to remote A2A agents, without Temporal and without the EventLog."""
