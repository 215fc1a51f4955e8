"""Tables and figures: readers of finished runs."""
