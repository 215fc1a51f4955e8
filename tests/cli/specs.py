"""Small specs for tests of the command."""

TINY = """\
title = "Tiny"
precision = "float64"
[problem]
x = { law = "gaussian", d = 4 }
target = { kind = "single_index", link = "erf" }
neuron = "erf"
[risk]
expectation = { way = "sample", m = 32 }
[times]
end = 1.0
count = 3
[[dynamics]]
name = "gd"
method = "gradient_descent"
step = 0.1
width = 6
seeds = 2
[observe]
kernel = 4
test = 8
particles = 6
"""

# Many times to look at, so that there are many pieces between which it can be stopped.
LONG = (
    TINY.replace("count = 3", "count = 201")
    .replace("gradient_descent", "sgd")
    .replace("step = 0.1", "step = 0.005")
    .replace("seeds = 2", "seeds = 1")
)
