"""Functionals of a state: value, first variation Ψ, velocity −∇Ψ."""
