"""What happens next. Workflow code decides; its effects are activities it knows by name."""
