"""The sequences in JAX, jitted, matrix products at the highest precision. Mapped products are written as sums of products,
which XLA fuses; as `@` they are calls of a library. XLA_PYTHON_CLIENT_PREALLOCATE=false must be set before this is imported.

SEQUENCES: name -> function(*inputs, **scalars) -> tuple of outputs, to be jitted by compiled().
"""
import functools

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_matmul_precision", "highest")


def axpydot(w, v, u, a):
    z = w - a * v
    return z, jnp.dot(z, u)


def vadd(w, y, z):
    return (w + y + z,)


def waxpby(x, y, a, b):
    return (a * x + b * y,)


def sscal(x, a):
    return (a * x,)


def atax(A, x):
    return (A.T @ (A @ x),)


def bicgk(A, p, r):
    return A @ p, A.T @ r


def sgemv(A, x, y, a, b):
    return (a * (A @ x) + b * y,)


def sgemvt(A, y, z, a, b):
    x = b * (A.T @ y) + z
    return x, a * (A @ x)


def gemver(A, u1, v1, u2, v2, y, z, alpha, beta):
    B = A + u1[:, None] * v1 + u2[:, None] * v2
    x = beta * (B.T @ y) + z
    return B, x, alpha * (B @ x)


def gesummv(A, B, x, a, b):
    return (a * (A @ x) + b * (B @ x),)


def madd(A, B):
    return (A + B,)


def product(A, B):
    return sum(A[:, :, k, None] * B[:, k, None, :] for k in range(A.shape[2]))


def function1(A, B, c, D, E):
    v = sum(product(A, B)[:, :, k] * c[:, k, None] for k in range(3))
    return ((product(D, E) + D) * jnp.sqrt(jnp.sum(v * v, axis=1))[:, None, None],)


def function2(A, B, C, D):
    return (product(A, B) + product(A, C) + product(A, D),)


def joint_poses(P, L, x):
    G = product(P, L)
    return G, (G * x[:, None, :]).sum(2)


def softmax(X):
    return (jax.nn.softmax(X, axis=1),)


def layer_norm(X, gain, bias):
    mean = jnp.mean(X, axis=1, keepdims=True)
    D = X - mean
    return (D * jax.lax.rsqrt(jnp.mean(D * D, axis=1, keepdims=True) + 1e-5) * gain + bias,)


def rms_norm(X, R, gain):
    H = X + R
    return H, H * jax.lax.rsqrt(jnp.mean(H * H, axis=1, keepdims=True) + 1e-6) * gain


def cg_step(A, x, r, p, rr):
    q = A @ p
    alpha = rr / jnp.dot(p, q)
    r1 = r - alpha * q
    rr1 = jnp.dot(r1, r1)
    return x + alpha * p, r1, r1 + (rr1 / rr) * p, rr1


def adam_step(p, g, m, v, rate, c1, c2):
    m1 = 0.9 * m + 0.1 * g
    v1 = 0.999 * v + 0.001 * (g * g)
    return p - rate * (c1 * m1) / (jnp.sqrt(jnp.abs(c2 * v1)) + 1e-8), m1, v1


def black_scholes(S, K, T):
    w = 0.3 * jnp.sqrt(T)
    d1 = (jnp.log(S) - jnp.log(K) + 0.065 * T) / w
    d2 = d1 - w
    KD = K * jnp.exp(-0.02 * T)
    N1 = 0.5 + 0.5 * jax.scipy.special.erf(0.70710678118654752 * d1)
    N2 = 0.5 + 0.5 * jax.scipy.special.erf(0.70710678118654752 * d2)
    call = S * N1 - KD * N2
    return call, call - S + KD


def st_venant_kirchhoff(F, lambda_, mu):
    identity = jnp.eye(3, dtype=F.dtype)
    E = 0.5 * (product(jnp.swapaxes(F, 1, 2), F) - identity)
    trace = E[:, 0, 0] + E[:, 1, 1] + E[:, 2, 2]
    return (product(F, (lambda_ * trace)[:, None, None] * identity + 2 * mu * E),)


def mapped_product(A, B):
    return (product(A, B),)


SEQUENCES = {f.__name__: f for f in (
    axpydot, vadd, waxpby, sscal, atax, bicgk, sgemv, sgemvt, gemver, gesummv, madd, function1, function2, joint_poses,
    softmax, layer_norm, rms_norm, cg_step, adam_step, black_scholes, st_venant_kirchhoff, mapped_product)}


def compiled(name, scalars):
    """The jitted function of the inputs alone, the scalars being constants."""
    return jax.jit(functools.partial(SEQUENCES[name], **scalars))


def from_torch(tensor):
    """The same memory as a JAX array."""
    return jax.dlpack.from_dlpack(tensor)


def to_torch(torch, array):
    """The same memory as a tensor."""
    return torch.from_dlpack(array)
