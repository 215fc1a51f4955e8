"""Minimising movements: ρ_{k+1} = argmin F(ρ) + W2²(ρ, ρ_k)/(2τ), one scheme per file.

`quantiles` on the line, with entropy and exact W2; `proximal` on particles without noise, with the
`assignment` that makes its distance W2; `splitting` with noise; `entropic` on grids. The first three find
their minimum by `newton`."""
