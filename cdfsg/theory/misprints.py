"""Errata beside those of the statements: words, letters and steps of proofs, each with what shows that it is one.

`tests.theory.test_errata` evaluates the proofs here, and the counterexamples, without a formula of this package.
Wrong references between equations are left out.
"""
# fmt: off (see statement.py)

from cdfsg.theory import counterexamples
from cdfsg.theory.statement import Erratum

MISPRINTS = (
    Erratum("Section 1, Assumption 1.1 (3)",
        "M_theta in R^(n x n), and M positive definite",
        "M_theta symmetric", "typo",
        proof="x'Mx = |x|^2 for M = [[1, 1], [-1, 1]], yet no 2-by-2 matrix X has X'MX = I: "
              "the skew part of X'MX is det(X) [[0, 1], [-1, 0]]"),
    Erratum("Section 2, condition number",
        "kappa(A) = sigma_max(M)/sigma_min(M)",
        "kappa(A) = sigma_max(A)/sigma_min(A)", "typo",
        proof="A = I and M = diag(1, 4): 1, while 4 is printed"),
    Erratum("Section 2, eq:omega",
        "Omega is a neighbourhood of the feasible set",
        "the feasible set lies on the boundary of Omega; Omega_r is a neighbourhood",
        "wrong claim",
        proof="(1 + t) X lies outside Omega for each feasible X and t > 0, since sigma_max(C) = (1 + t)^2"),
    Erratum("Section 3.1, beta~",
        "beta~ >= 12 kappa (3 (p+1) L_g + s^(1/2) L_0)/s; beta > beta~ in pro:sigma_up, beta >= beta~ where it is used",
        "beta~ = 12 kappa (3 (p+1) L_g + s^(1/2) L_0)/s, and beta >= beta~ and beta > 0 throughout", "typo",
        proof="with equality beta~ is one number, and pro:sigma_up's last line is positive at beta = beta~: "
              "beta~ - (9 p L_g + 6 s^(1/2) L_0)/(4 s) >= (135 p L_g + 42 s^(1/2) L_0)/(4 s); f = 0 needs beta > 0"),
    Erratum("Section 3.1, proof of Le_inner_nablah_XQ, last line",
        "(... - 3/2 Lambda(X)) (X'MX + I) Q",
        "(... - 3/2 Lambda(X)) (X'MX - I) Q, since C^2 - I = (C + I)(C - I)", "typo",
        proof="f = 0, n = p = 1, M = beta = Q = 1, x = 2: <x, grad h> = 60, while 100 is printed"),
    Erratum("Section 3.1, proof of le:normj (ii)",
        "||X Psi(X'MD)|| <= ||X X'MD||",
        "||X Psi(X'MD)|| <= kappa^(1/2) ||D||, which serves as well", "gap in proof",
        proof="M = I, X = diag(1, 1/2), D = [[0, 0], [2, 0]]: the squares are 5/16 and 1/4"),
    Erratum("Section 3.2, proof of The_first_order_equivalence_feasible",
        "sigma_max(X'G(X)) <= 2 p L_g + s^(1/2) L_0",
        "sigma_max(X'G(X)) <= (2 p L_g + s^(1/2) L_0)/s", "typo",
        proof="f = x, n = p = 1, M = 1/4, x = 2: xG = 2, the printed bound is 1/2, the corrected one 2"),
    Erratum("Section 3.2, pro:saddle, words",
        "X outside S_{n,p}; a c-strict saddle point, without a definition",
        "X outside S_M(n,p); a c-saddle point of def:occd", "typo",
        proof="f = 0, M = 4: X = 1/2 is feasible and minimises h, while X'X = 1/4 is not 1"),
    Erratum("Section 3.3, proof of le:sop_slep, curvature along N = XS",
        "J_G(X)[N] = hess f(X)[N]",
        "J_G(X)[N] = 0; the two terms of hess f(X)[N] cancel", "typo",
        proof="f = x^2/2, n = p = 1, M = 1, x = N = 1: G = (3 x - x^3)/2 has the derivative 0, while 1 is printed"),
    Erratum("Section 3.3, proof of le:sop_slep, before step (i)",
        "tr(S^2 X' grad f(X)) = sigma_max(X' grad f(X)) ||S||^2",
        "tr(S^2 X' grad f(X)) <= sigma_max(X' grad f(X)) ||S||^2", "typo",
        proof="f = X_11, M = X = I, S = diag(0, 1): 0 and 1"),
    Erratum("Section 3.4, first line of eq:sta2",
        "<XQ, grad h> - <XQ, -beta M X (C^2 - I)>",
        "<XQ, grad h> - <XQ, beta M X (C^2 - I)>", "typo",
        proof="f = 0, n = p = 1, M = beta = Q = 1, x = 2: <x, grad g> = 0, while 60 + 60 is printed"),
    Erratum("Section 4.1, before eq:updatey",
        "an unbiased estimator of grad h needs C(X) without noise",
        "for quadratic f products of independent samples are one", "wrong claim",
        proof="f = 0: beta M_1 X (C_2 C_3 - I) of three independent draws has the mean beta M X (C^2 - I)"),
    Erratum("Section 4.1, Algorithm 1, output",
        "the last iterate X_K",
        "X_k of a k drawn from 0, ..., K-1 (Algorithm 2: 1, ..., K), as the theorems bound the mean over k",
        "wrong claim",
        proof="f = 0, M_theta = beta = 1, alpha = 1/4, b = 1, x_0 = 0.01, K = 16: "
              "|h'(x_K)|^2 is more than five times the mean, and no iterate's is larger"),
    Erratum("Section 4.1, as:algo (4)",
        "||D_k|| <= tau_d, from which tau_y = tau_x tau_m (tau_x + 2 a tau_d) bounds Y_k and so W(X_k, Y_k) = D_k",
        "(4) follows from (2), (3), bounded grad f_xi and b_k >= b > 0, but with a tau_d that grows with 1/b, "
        "which is s1 K^(1/2)/s2 in the theorems", "gap in proof",
        proof="circular: f = 0, M_theta = beta = tau_x = 1, a = 2: the largest |W| where |x| <= 1 and |y| <= tau_y "
              "is tau_y^2 - 1 = 8 tau_d + 16 tau_d^2 > tau_d"),
    Erratum("Section 4.1, pro:boundy in Algorithm 2",
        "||Y_k|| <= tau_y for the Y_k of eq:updatey, which both algorithms use",
        "Algorithm 2 needs (np/(1 - eta2))^(1/2) of pr:xkdist for tau_d in tau_y, "
        "as ||X_{k+1} - X_k|| is not alpha_k ||D_k||",
        "wrong formula", counterexamples.tracking_in_algorithm_2),
    Erratum("Section 4.1, L_h and L_W",
        "sup (grad h(X_1) - grad h(X_2))/||X_1 - X_2||, and so for W",
        "sup ||grad h(X_1) - grad h(X_2)||/||X_1 - X_2||", "typo",
        proof="a matrix has no supremum, and one of 2 entries or more is no number"),
    Erratum("Section 4.1, proof of pr:yktrack",
        "E[I_2 | F_k] = E[I_3 | F_k] = 0, <E[I_1 | F_k], I_3>, ||X_k||^2 E||M - M_theta||^2, "
        "and <I_2, I_3> in the Cauchy-Schwarz inequality",
        "E[I_2 | F_k] = I_3, <E[I_2 | F_k], I_3>, ||X_k||^4 E||M - M_theta||^2, and <I_1, I_2>", "typo",
        proof="M_theta in {1, 3}, x = 2 -> 3: E I_2 = I_3 = 10, and E I_1^2 = 16 > x^2 E|M - M_theta|^2 = 4"),
    Erratum("Section 4.1, proof of the theorem on Algorithm 1, expectations",
        "E[. | F_k] = E[E[. | F_{k-1}] | F_k], and ||C(X_{k+1}) - Y_{k+1}||^2 without E after it",
        "full expectations, since E E[. | F_k] = E E[. | F_{k-1}]", "gap in proof",
        proof="F_k knows D_k: for D_k = +-1 equally often E[E[D_k | F_{k-1}] | F_k] = 0, while E[D_k | F_k] = +-1"),
    Erratum("Section 4.1, proof of the theorem on Algorithm 1, sums",
        "sums over k = 0, ..., K of what K steps add",
        "sums over k = 0, ..., K-1, as in the theorem", "typo",
        proof="K = 1, b_0 = b_1 = 1: the sum of b_k^2 is 1, while 2 is printed"),
    Erratum("Section 4, both theorems, X_*",
        "X_* in argmin h, for every beta > 0",
        "the infimum over ||X|| <= tau_x, or beta > 3/4 L_g/s; else h may be unbounded below and J_0 infinite",
        "gap in proof",
        proof="f = -4 x^2, n = p = 1, M = beta = 1: h = -5/6 x^6 + 6 x^4 - 19/2 x^2"),
    Erratum("Section 4.2, Algorithm 2, scaling",
        "the scaling parameter V_{k+1}; no initial V-hat_0; every eta1, eta2 in [0, 1)",
        "the scaling parameter V-hat_{k+1}; V-hat_0 is an input; eta1 < eta2^(1/2) for gamma < 1", "typo",
        proof="V-hat_0 = 4, eta2 = 1/2, D_1 = 0: V_1 = 2 and V-hat_1 = 4; eta1 = 1/2, eta2 = 1/5: gamma = 5/4"),
    Erratum("Section 4.2, proof of pr:xkdist, indices",
        "D_k in B_{k+1}, V_{k+1} and B_{k+1} in X_{k+1} - X_k, a power 1/2 in the bound of |B_{k+1}|^2, "
        "sum_l gamma^(k-l) <= sum_l gamma^k",
        "D_{k+1} in B_{k+1} (eq:updateb), V_k and B_k (eq:updatex), no power, sum_l gamma^l; "
        "the proposition is on Algorithm 2, not 1", "typo",
        proof="gamma = 1/2, k = 1: 1/2 + 1 > 1/2 + 1/2; eta1 = 0: B_1 = D_1, which D_0 does not bound; "
              "V_0 = 1, B_0 = 2: X_1 - X_0 = -2 alpha for epsilon -> 0, whatever V_1 and B_1; |B|^2 = 4 > 4^(1/2)"),
    Erratum("Section 4.2, eq:divij, first line",
        "-c_k <grad h(X_k), (eps + V_k)^(-1/2) B_k>",
        "+c_k <grad h(X_k), (eps + V_k)^(-1/2) B_k>", "typo",
        proof="it is minus a term of J_k (eq:jkdefi_1): where only that one is not zero, J_k = -c_k <.> "
              "and J_{k+1} - J_k = c_k <.>"),
    Erratum("Section 4.2, theorem on Algorithm 2, constants",
        "tau_h tau_d eps^(-1/2) (np + 1) / (s2 (1 - eta1) sqrt(K)), 8 c s2 tau_x^2 tau_m^2; "
        "tau_h without a definition, and eta~ with one in the proof",
        "tau_h tau_d eps^(-1/2) (np + 1) / ((1 - eta1) sqrt(K)), 16 c s2 tau_x^2 tau_m^2, for b_k <= 1; "
        "tau_h = sup ||grad h(X_k)||", "wrong constant",
        proof="the proof adds c_K <= alpha_K/(1 - eta1), with alpha_K = s2/sqrt(K), and divides by s2: no s2 is left, "
              "and for s2 = 2 half is printed; the 8 is twice the 4 of pr:yktrack, which should be 8"),
    Erratum("Section 4.2, proof of the theorem on Algorithm 2, letters",
        "c ||C(X_k) - Y_k||, (1 - eta)^(-1), c_k and C(X_k) in -E J_K, and eq:i3 without E",
        "c ||C(X_k) - Y_k||^2, (1 - eta1)^(-1), c_K and C(X_K), and E", "typo",
        proof="J_k has the square: 4, not 2, where ||C(X_k) - Y_k|| = 2 and c = 1"),
)
