"""The mean-field limit to many digits."""
