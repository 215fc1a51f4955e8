"""`python -m wideflow` is the command `wideflow`."""

from .cli.app import main

if __name__ == "__main__":
    main()
