"""`make reliability`: every attack at full length, with its counts; `make reliability ATTACKS="kills faults"`
for some of them. It takes about an hour.

A long attack can be made in parts, whose counts add up: `python -m reliability kills --seed 1 --count 200
--targets limit command`. Another seed draws other moments, another `--count` makes it shorter."""

import argparse
import sys
import time

import jax

from reliability import bombs, damages, faults, functions, kills

# Each with how often, and the counts that must be 0.
ATTACKS = {
    "kills": (kills.attack, 1000, ("lost",)),
    "faults": (faults.attack, 1000, ("silent",)),
    "damages": (damages.attack, 10_000, ("silent", "wrong")),
    "bombs": (bombs.attack, 1000, ("wrong", "slow", "dead")),
    "functions": (functions.attack, 10_000, ("taken for another",)),
}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m reliability", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="ATTACK", help=", ".join(ATTACKS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, help="how often, instead of the full length")
    parser.add_argument("--targets", nargs="+", choices=kills.TARGETS, default=kills.TARGETS)
    asked = parser.parse_args(words)
    if unknown := [name for name in asked.names if name not in ATTACKS]:
        parser.error(f"There is no attack {unknown[0]!r}; there are {', '.join(ATTACKS)}.")
    jax.config.update("jax_enable_x64", True)
    failed = []
    for name in asked.names or ATTACKS:
        attack, count, forbidden = ATTACKS[name]
        begun = time.monotonic()
        some = {"names": tuple(asked.targets)} if name == "kills" else {}
        counts = attack(asked.count or count, asked.seed, **some)
        failed += [f"{name}: {counts[bad]} {bad}" for bad in forbidden if counts.get(bad, 0)]
        listed = ", ".join(f"{number} {what}" for what, number in counts.items())
        print(f"{name} ({time.monotonic() - begun:.0f} s): {listed}", flush=True)
    print("\n".join(failed) or "Nothing was lost, and nothing silent.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
