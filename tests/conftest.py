import jax

# The tests compare with closed forms to ten digits and more.
jax.config.update("jax_enable_x64", True)
