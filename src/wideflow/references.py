"""The papers behind the methods."""

REFERENCES = {
    "arora2019": "S. Arora, S. S. Du, W. Hu, Z. Li, R. Salakhutdinov, R. Wang. On exact computation with "
    "an infinitely wide neural net. NeurIPS 2019.",
    "beck2003": "A. Beck, M. Teboulle. Mirror descent and nonlinear projected subgradient methods for "
    "convex optimization. Oper. Res. Lett. 31(3), 2003.",
    "chen2023": "X. Chen, C. Liang, D. Huang, et al. Symbolic discovery of optimization algorithms. NeurIPS "
    "2023.",
    "chizat2018": "L. Chizat, F. Bach. On the global convergence of gradient descent for "
    "over-parameterized models using optimal transport. NeurIPS 2018.",
    "chizat2019": "L. Chizat, E. Oyallon, F. Bach. On lazy training in differentiable programming. "
    "NeurIPS 2019.",
    "chizat2022": "L. Chizat. Mean-field Langevin dynamics: exponential convergence and annealing. TMLR "
    "2022.",
    "chizat2022b": "L. Chizat. Sparse optimization on measures with over-parameterized gradient descent. "
    "Math. Program. 194, 2022.",
    "cho2009": "Y. Cho, L. K. Saul. Kernel methods for deep learning. NIPS 2009.",
    "cristianini2001": "N. Cristianini, J. Shawe-Taylor, A. Elisseeff, J. Kandola. On kernel-target "
    "alignment. NIPS 2001.",
    "deepmind2020": "DeepMind et al. The DeepMind JAX ecosystem. 2020 (optax).",
    "dormand1980": "J. R. Dormand, P. J. Prince. A family of embedded Runge–Kutta formulae. J. Comput. "
    "Appl. Math. 6(1), 1980.",
    "geiger2020": "M. Geiger, S. Spigler, A. Jacot, M. Wyart. Disentangling feature and lazy training in "
    "deep neural networks. J. Stat. Mech. 113301, 2020.",
    "ghorbani2021": "B. Ghorbani, S. Mei, T. Misiakiewicz, A. Montanari. Linearized two-layers neural "
    "networks in high dimension. Ann. Statist. 49(2), 2021.",
    "holley1987": "R. Holley, D. Stroock. Logarithmic Sobolev inequalities and stochastic Ising models. "
    "J. Stat. Phys. 46, 1987.",
    "hu2021": "K. Hu, Z. Ren, D. Šiška, Ł. Szpruch. Mean-field Langevin dynamics and energy landscape of "
    "neural networks. Ann. Inst. H. Poincaré Probab. Statist. 57, 2021.",
    "jacot2018": "A. Jacot, F. Gabriel, C. Hongler. Neural tangent kernel: convergence and generalization "
    "in neural networks. NeurIPS 2018.",
    "jordan1998": "R. Jordan, D. Kinderlehrer, F. Otto. The variational formulation of the Fokker–Planck "
    "equation. SIAM J. Math. Anal. 29(1), 1998.",
    "kidger2021": "P. Kidger. On neural differential equations. DPhil thesis, Oxford, 2021 (diffrax).",
    "kingma2015": "D. P. Kingma, J. Ba. Adam: a method for stochastic optimization. ICLR 2015.",
    "koren1993": "B. Koren. A robust upwind discretization method for advection, diffusion and source terms. "
    "In: Numerical methods for advection–diffusion problems, Vieweg 1993.",
    "kornblith2019": "S. Kornblith, M. Norouzi, H. Lee, G. Hinton. Similarity of neural network "
    "representations revisited. ICML 2019.",
    "lee2018": "J. Lee, Y. Bahri, R. Novak, S. S. Schoenholz, J. Pennington, J. Sohl-Dickstein. Deep "
    "neural networks as Gaussian processes. ICLR 2018.",
    "lee2019": "J. Lee, L. Xiao, S. Schoenholz, Y. Bahri, R. Novak, J. Sohl-Dickstein, J. Pennington. "
    "Wide neural networks of any depth evolve as linear models under gradient descent. NeurIPS 2019.",
    "mei2018": "S. Mei, A. Montanari, P.-M. Nguyen. A mean field view of the landscape of two-layer "
    "neural networks. PNAS 115(33), 2018.",
    "mei2019": "S. Mei, T. Misiakiewicz, A. Montanari. Mean-field theory of two-layers neural networks: "
    "dimension-free bounds and kernel limit. COLT 2019.",
    "montanari2022": "A. Montanari, Y. Zhong. The interpolation phase transition in neural networks: "
    "memorization and generalization under lazy training. Ann. Statist. 50(5), 2022.",
    "nesterov1983": "Y. Nesterov. A method for solving the convex programming problem with convergence rate "
    "O(1/k²). Dokl. Akad. Nauk SSSR 269(3), 1983.",
    "nitanda2022": "A. Nitanda, D. Wu, T. Suzuki. Convex analysis of the mean field Langevin dynamics. "
    "AISTATS 2022.",
    "novak2022": "R. Novak, J. Sohl-Dickstein, S. S. Schoenholz. Fast finite width neural tangent kernel. "
    "ICML 2022.",
    "peyre2015": "G. Peyré. Entropic approximation of Wasserstein gradient flows. SIAM J. Imaging Sci. "
    "8(4), 2015.",
    "polyak1964": "B. T. Polyak. Some methods of speeding up the convergence of iteration methods. USSR "
    "Comput. Math. Math. Phys. 4(5), 1964.",
    "robbins1951": "H. Robbins, S. Monro. A stochastic approximation method. Ann. Math. Statist. 22(3), "
    "1951.",
    "rotskoff2019": "G. Rotskoff, S. Jelassi, J. Bruna, E. Vanden-Eijnden. Global convergence of neuron "
    "birth–death dynamics. ICML 2019.",
    "scharfetter1969": "D. L. Scharfetter, H. K. Gummel. Large-signal analysis of a silicon Read diode "
    "oscillator. IEEE Trans. Electron Devices 16(1), 1969.",
    "tsitouras2011": "C. Tsitouras. Runge–Kutta pairs of order 5(4) satisfying only the first column "
    "simplifying assumption. Comput. Math. Appl. 62(2), 2011.",
    "yang2021": "G. Yang, E. J. Hu. Tensor programs IV: feature learning in infinite-width neural "
    "networks. ICML 2021.",
    "yang2021b": "G. Yang, E. J. Hu, et al. Tensor programs V: tuning large neural networks via zero-shot "
    "hyperparameter transfer. NeurIPS 2021.",
}
