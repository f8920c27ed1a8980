"""What became of envelopes and dispatches that the ordinary way lost, and how it is put right."""
