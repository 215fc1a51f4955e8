"""`make reliability`: every attack at full length, with its counts; `make reliability ATTACKS="kills faults"`
for some of them. It takes about an hour."""

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


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in ATTACKS]:
        print(f"There is no attack {unknown[0]!r}; there are {', '.join(ATTACKS)}.", file=sys.stderr)
        return 2
    jax.config.update("jax_enable_x64", True)
    failed = []
    for name in names or ATTACKS:
        attack, count, forbidden = ATTACKS[name]
        begun = time.monotonic()
        counts = attack(count, 0)
        failed += [f"{name}: {counts[bad]} {bad}" for bad in forbidden if counts.get(bad, 0)]
        listed = ", ".join(f"{number} {what}" for what, number in counts.items())
        print(f"{name} ({time.monotonic() - begun:.0f} s): {listed}", flush=True)
    print("\n".join(failed) or "Nothing was lost, and nothing silent.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
