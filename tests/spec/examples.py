"""Valid specs that between them use every law, target, start, method and way, short forms and long ones."""

NEURON = """\
# The same neuron, wide and infinitely wide.
title = "A single neuron"
about = \"\"\"
Feature learning
against lazy training.\"\"\"
seed = 3

[problem]
x = { law = "gaussian", d = 50 }
target = { kind = "single_index", link = "erf" }
neuron = "erf"

[start]
a = 1.0
w = 1.0

[times]
end = 10.0

[[dynamics]]
name = "limit"
method = "limit"
tol = 1e-6

[[dynamics]]
name = "wide"
method = "sgd"
step = 1e-3
width = [30, 300, 3_000] # three sizes
seeds = 5

[[dynamics]]
name = "lazy"
method = "gradient_descent"
step = 0.01
alpha = ["sqrt(n)", 1.0]
linearised = true

[observe]
cloud = ["w1", "a"]
feature = "w1"
norms = ["second_moment", "path_norm"]
"""

TEACHER = """\
precision = "float64"
problem.noise = 0.1
problem.reduced = true

[problem.x]
law = "sphere"
d = inf

[problem.target]
kind = "teacher"
w = [
  [1.0, 0.0], # the first
  [0.0, 1.0],
]
a = [1, -1]
b = [0.0, 0.5]
link = { name = "leaky_relu", slope = 0.1 }

[problem.neuron]
activation = { name = "piecewise_linear", knots = [[-1, 0], [0, 0], [1, 1]] }
bias = true
output = "frozen"
outputs = 1

[problem.loss]
name = "huber"
delta = 0.5

[start]
kind = "particles"
mirrored = true
a = { law = "signs", scale = 1 }
w = { law = "uniform", low = -2, high = 2 }
b = { law = "constant", value = 0.5 }

[risk]
expectation = { way = "quadrature", order = 40 }
second_moment = 1e-3

[times]
at = [0, 0.5, 1, 2]

[[dynamics]]
method = "gradient_flow"
width = 64
rtol = 1e-6
atol = 1e-8
max_steps = 500

[[dynamics]]
method = "langevin"
step = 0.01
beta = inf
decay = 0.1
batch = 32
one_pass = false
"""

CLASSES = """\
[problem]
neuron = { activation = "relu", bias = true }
loss = "logistic"
[problem.x]
law = "two_gaussians"
d = 40
delta = 0.2
subspace = 5
[start]
kind = "mlp"
depth = 2
activation = "tanh"
gain = 1.4
bias = 0.1
input_scale = "front"
centred = true
[risk.expectation]
way = "sample"
m = 4096
seed = 7
[times]
end = 100
count = 21
spacing = "log"
first = 0.1
[[dynamics]]
method = "adam"
step = 1e-3
batch = 64
b1 = 0.8
b2 = 0.99
eps = 1e-6
decay = 0.01
one_pass = true
parametrisation = ["mup", "ntk", { a = [0, 0.5, 1], b = [0, 0, 0], c = [0, 0, 0] }]
[[dynamics]]
method = "kernel_flow"
rtol = 1e-6
alpha = 30
"""

DATA = """\
[problem]
neuron = "relu"
loss = "cross_entropy"
x = { law = "dataset", file = "rows.csv", features = ["p", "q"], target = ["y"], weights = "m" }
[start]
kind = "cnn"
inputs = [8, 8, 1]
depth = 2
activation = { name = "gelu" }
window = 3
stride = 1
padding = "VALID"
pool = 2
head = "average"
gain = 1.0
bias = 0
input_scale = "start"
centred = false
[risk]
path_norm = 0.01
expectation.way = "auto"
[times]
end = 1
[[dynamics]]
method = "sgd"
step = 0.1
batch = 16
width = 32
parametrisation = "mup"
one_pass = false
[observe]
particles = 0
kernel = 16
test = 100
snapshots = true
"""

POLYNOMIAL = """\
problem = { x = { law = "gaussian", d = 3, covariance = [1, 2, 3] }, neuron = { activation = "square" },\
 target = { kind = "polynomial", coefficients = [0, 1, 0.5], direction = [1, 0, 0] } }
risk.expectation = { way = "closed_form", order = 20 }
times = { end = 2.5 }
start = { a = { law = "normal", mean = 0, sd = 2 }, w = 0.5 }
dynamics = [
  { method = "gradient_flow" },
  { method = "gradient_flow", name = "twice as wide", width = 600 },
]
"""

HERMITE = """\
[problem.x]
law = "gaussian"
d = 2
covariance = [[1.0, 0.5], [0.5, 1.0]]
[problem.target]
kind = "hermite"
degree = 3
direction = [0.6, 0.8]
[problem.neuron]
output = "unit"
[problem.neuron.activation]
name = "hermite"
degree = 3
[times]
end = 10
[[dynamics]]
'method' = "limit"
probes = 0
work = 1e6
alpha = 2
"""

DENSITIES = """\
precision = "float64"
[problem]
x = { law = "gaussian", d = 5 }
target = { kind = "single_index", link = "erf" }
neuron = { activation = "erf", output = "unit" }
reduced = true
[start]
w = 0.8
[risk]
expectation = { way = "sample", m = 64 }
[times]
end = 1.0
count = 3
[[dynamics]]
name = "density"
method = "grid_flow"
beta = 20
decay = 0.1
tol = 1e-4
max_steps = 10_000
alpha = [1, 2]
grid = { low = [-3, 0], high = [3, 3], cells = [24, 12] }
[[dynamics]]
name = "movements"
method = "jko"
step = 0.1
beta = 20
epsilon = 0.5
tol = 1e-4
grid = { low = [-3, 0], high = [3, 3], cells = 12 }
[[dynamics]]
name = "mirror"
method = "fisher_rao"
step = 0.05
beta = 20
decay = 0.1
[dynamics.grid]
low = [-3, 0]
high = 3
cells = [12, 12]
[[dynamics]]
name = "annealed"
method = "langevin"
step = 0.05
noise_on = "s"
width = 16
[dynamics.beta]
start = 1
end = 100
over = 0.5
kind = "power"
power = 3
"""

MASSES = """\
[problem]
x = { law = "gaussian", d = 2 }
target = { kind = "single_index", link = "tanh" }
neuron = "tanh"
[start]
a = { law = "rademacher" }
[risk]
expectation = { way = "sample", m = 64 }
[times]
end = 1
count = 3
[[dynamics]]
method = "jko"
step = 0.25
width = 12
[[dynamics]]
method = "fisher_rao"
step = 0.1
width = 12
alpha = "sqrt(n)"
seeds = 2
[[dynamics]]
method = "wasserstein_fisher_rao"
step = 0.1
reaction = 2
decay = 0.01
width = 12
[[dynamics]]
method = "birth_death"
step = 0.1
reaction = 0.5
beta = 50
width = 12
seeds = 2
[[dynamics]]
method = "optax"
optimiser = "momentum"
step = 0.01
batch = 8
one_pass = true
width = 12
"""

EXAMPLES = {
    "densities": DENSITIES,
    "masses": MASSES,
    "neuron": NEURON,
    "teacher": TEACHER,
    "classes": CLASSES,
    "data": DATA,
    "polynomial": POLYNOMIAL,
    "hermite": HERMITE,
}
