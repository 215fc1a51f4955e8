"""Tangent kernels at finite width: of any JAX function, and of our networks layer by layer."""
