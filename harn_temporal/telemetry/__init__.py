"""What is seen from outside: metrics, traces and structured logs."""
