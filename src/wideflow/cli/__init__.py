"""The command `wideflow`: thin, and quick to start, as the library is loaded by the commands that need it."""
