"""The sequences in torch, one plain function each, as for eager execution and torch.compile alike. Scalars are given as
numbers by keyword; a scalar result is a 0-d tensor.

SEQUENCES: name -> function(*inputs, **scalars) -> tuple of outputs. PRODUCTS: mapped products written as sums of products
over broadcast operands, which a compiler can fuse (and which would be no good in eager execution).
"""
import torch
import torch.nn.functional as F


def axpydot(w, v, u, a):
    z = torch.sub(w, v, alpha=a)
    return z, torch.dot(z, u)


def vadd(w, y, z):
    return (w + y + z,)


def waxpby(x, y, a, b):
    return (torch.add(a * x, y, alpha=b),)


def sscal(x, a):
    return (a * x,)


def atax(A, x):
    return (torch.mv(A.t(), torch.mv(A, x)),)


def bicgk(A, p, r):
    return torch.mv(A, p), torch.mv(A.t(), r)


def sgemv(A, x, y, a, b):
    return (torch.addmv(y, A, x, beta=b, alpha=a),)


def sgemvt(A, y, z, a, b):
    x = torch.addmv(z, A.t(), y, alpha=b)
    return x, torch.mv(A, a * x)


def gemver(A, u1, v1, u2, v2, y, z, alpha, beta):
    B = torch.addr(torch.addr(A, u1, v1), u2, v2)
    x = torch.addmv(z, B.t(), y, alpha=beta)
    return B, x, torch.mv(B, alpha * x)


def gesummv(A, B, x, a, b):
    return (torch.addmv(torch.mv(B, b * x), A, x, alpha=a),)


def madd(A, B):
    return (A + B,)


def function1(A, B, c, D, E):
    v = torch.bmm(torch.bmm(A, B), c.unsqueeze(2)).squeeze(2)
    s = torch.linalg.vector_norm(v, dim=1)
    return (torch.baddbmm(D, D, E) * s[:, None, None],)


def function2(A, B, C, D):
    return (torch.baddbmm(torch.baddbmm(torch.bmm(A, B), A, C), A, D),)


def joint_poses(P, L, x):
    G = torch.bmm(P, L)
    return G, torch.bmm(G, x.unsqueeze(2)).squeeze(2)


def softmax(X):
    return (torch.softmax(X, dim=1),)


def layer_norm(X, gain, bias):
    return (F.layer_norm(X, (X.shape[1],), gain, bias, eps=1e-5),)


def rms_norm(X, R, gain):
    H = X + R
    if hasattr(F, "rms_norm"):
        return H, F.rms_norm(H, (H.shape[1],), gain, eps=1e-6)
    return H, H * torch.rsqrt(H.square().mean(dim=1, keepdim=True) + 1e-6) * gain


def cg_step(A, x, r, p, rr):
    q = torch.mv(A, p)
    alpha = rr / torch.dot(p, q)
    x1 = torch.addcmul(x, alpha, p)
    r1 = torch.addcmul(r, alpha, q, value=-1)
    rr1 = torch.dot(r1, r1)
    return x1, r1, torch.addcmul(r1, rr1 / rr, p), rr1


def adam_step(p, g, m, v, rate, c1, c2):
    m1 = torch.add(0.9 * m, g, alpha=0.1)
    v1 = torch.addcmul(0.999 * v, g, g, value=0.001)
    step = (c1 * m1) / ((c2 * v1).abs().sqrt() + 1e-8)
    return torch.sub(p, step, alpha=rate), m1, v1


def black_scholes(S, K, T):
    w = 0.3 * torch.sqrt(T)
    d1 = (torch.log(S) - torch.log(K) + 0.065 * T) / w
    d2 = d1 - w
    KD = K * torch.exp(-0.02 * T)
    N1 = 0.5 + 0.5 * torch.erf(0.70710678118654752 * d1)
    N2 = 0.5 + 0.5 * torch.erf(0.70710678118654752 * d2)
    call = S * N1 - KD * N2
    return call, call - S + KD


def st_venant_kirchhoff(F, lambda_, mu):
    identity = torch.eye(3, dtype=F.dtype, device=F.device)
    E = 0.5 * (torch.bmm(F.transpose(1, 2), F) - identity)
    trace = E.diagonal(dim1=1, dim2=2).sum(1)
    S = (lambda_ * trace)[:, None, None] * identity + 2 * mu * E
    return (torch.bmm(F, S),)


def mapped_product(A, B):
    return (torch.bmm(A, B),)


def product(A, B):
    """A*B of lists of matrices as a sum over a broadcast dimension."""
    return (A.unsqueeze(3) * B.unsqueeze(1)).sum(2)


def mapped_product_products(A, B):
    return (product(A, B),)


def function1_products(A, B, c, D, E):
    v = (product(A, B) * c[:, None, :]).sum(2)
    return ((product(D, E) + D) * v.square().sum(1).sqrt()[:, None, None],)


def function2_products(A, B, C, D):
    return (product(A, B) + product(A, C) + product(A, D),)


def joint_poses_products(P, L, x):
    G = product(P, L)
    return G, (G * x[:, None, :]).sum(2)


def st_venant_kirchhoff_products(F, lambda_, mu):
    identity = torch.eye(3, dtype=F.dtype, device=F.device)
    E = 0.5 * (product(F.transpose(1, 2), F) - identity)
    trace = E.diagonal(dim1=1, dim2=2).sum(1)
    return (product(F, (lambda_ * trace)[:, None, None] * identity + 2 * mu * E),)


SEQUENCES = {f.__name__: f for f in (
    axpydot, vadd, waxpby, sscal, atax, bicgk, sgemv, sgemvt, gemver, gesummv, madd, function1, function2, joint_poses,
    softmax, layer_norm, rms_norm, cg_step, adam_step, black_scholes, st_venant_kirchhoff, mapped_product)}
PRODUCTS = {"function1": function1_products, "function2": function2_products, "joint_poses": joint_poses_products,
            "mapped_product": mapped_product_products, "st_venant_kirchhoff": st_venant_kirchhoff_products}


def keywords(scalars):
    """The scalars of a sequence as arguments: lambda is a word of the language."""
    return {"lambda_" if name == "lambda" else name: value for name, value in scalars.items()}
