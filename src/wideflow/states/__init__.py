"""States: whatever predicts, `state(x)`."""
