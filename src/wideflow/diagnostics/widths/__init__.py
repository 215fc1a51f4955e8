"""How what training moves depends on the width n."""
