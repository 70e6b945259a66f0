"""Triton kernels of PPO's losses and of the optimizer's step: minibatch.py, steps.py.

Sums are in float32, and in a fixed order: equal inputs give equal results, bit for bit.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportOperatorIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["count"])
def advantage_moments(advantages, index, moments, count, BLOCK: tl.constexpr):
    """moments (2,): the mean of advantages[index], (count,), and their standard deviation plus 1e-8. One program."""
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, count, BLOCK):
        at = first + tl.arange(0, BLOCK)
        total += tl.load(advantages + tl.load(index + at, mask=at < count, other=0), mask=at < count, other=0)
    mean = tl.sum(total, 0) / count
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, count, BLOCK):
        at = first + tl.arange(0, BLOCK)
        found = tl.load(advantages + tl.load(index + at, mask=at < count, other=0), mask=at < count, other=mean)
        squares += (found - mean) * (found - mean)
    tl.store(moments, mean)
    tl.store(moments + 1, tl.sqrt(tl.sum(squares, 0) / (count - 1)) + 1e-8)


@triton.jit
def _policy(outputs, actions, old_logprobs, advantages, out, A, clip_coef, entropy_coef):
    """(gradient of the logits, figures) of each sample for PPO's policy loss and entropy bonus. outputs (BLOCK, OUTS):
    logits in the first A columns; actions, old_logprobs and advantages (BLOCK,)."""
    is_action = (out < A)[None, :]
    logits = tl.where(is_action, outputs, float("-inf"))
    shifted = logits - tl.max(logits, 1)[:, None]
    powers = tl.exp(shifted)
    total = tl.sum(powers, 1)[:, None]
    chances = powers / total
    logprobs = tl.where(is_action, shifted - tl.log(total), 0.0)
    taken = out[None, :] == actions[:, None]
    log_ratio = tl.sum(tl.where(taken, logprobs, 0.0), 1) - old_logprobs
    ratio = tl.exp(log_ratio)
    near = tl.minimum(tl.maximum(ratio, 1 - clip_coef), 1 + clip_coef)
    unclipped = advantages * ratio
    clipped = advantages * near
    entropy = -tl.sum(chances * logprobs, 1)
    of_logprob = tl.where(unclipped <= clipped, -unclipped, 0.0)  # the gradient of the ratio is the ratio
    of_logits = of_logprob[:, None] * (tl.where(taken, 1.0, 0.0) - chances)
    of_logits += entropy_coef * chances * (logprobs + entropy[:, None])
    far = tl.where(tl.abs(ratio - 1) > clip_coef, 1.0, 0.0)
    return of_logits, -tl.minimum(unclipped, clipped), entropy, -log_ratio, ratio - 1 - log_ratio, far


@triton.jit
def _value(values, old_values, returns, value_clip, HAS_CLIP: tl.constexpr):
    """(gradient, loss) of each value, (BLOCK,): half of the squared error, of the larger one with a clipped value."""
    error = values - returns
    gradient = error
    square = error * error
    if HAS_CLIP:
        moved = values - old_values
        near = old_values + tl.minimum(tl.maximum(moved, -value_clip), value_clip) - returns
        inner = tl.where(tl.abs(moved) <= value_clip, near, 0.0)
        gradient = tl.where(square >= near * near, error, inner)
        square = tl.maximum(square, near * near)
    return gradient, 0.5 * square


@triton.jit
def _of_heads(policy, value, out, col, A, H: tl.constexpr):
    """Columns `col` of the weights of policy, (A, H), and value, (1, H), below each other, and nothing; (OUTS, col)."""
    found = tl.load(policy + out[:, None] * H + col[None, :], mask=(out < A)[:, None], other=0)
    return found + tl.load(value + out[:, None] * 0 + col[None, :], mask=(out == A)[:, None], other=0)


@triton.jit(do_not_specialize=["count", "A"])
def ppo_heads(
    hidden,
    policy_weight,
    policy_bias,
    value_weight,
    value_bias,
    index,
    actions,
    old_logprobs,
    old_values,
    advantages,
    returns,
    moments,
    of_hidden,
    partials,
    count,
    A,
    clip_coef,
    value_clip,
    value_coef,
    entropy_coef,
    HAS_CLIP: tl.constexpr,
    H: tl.constexpr,
    OUTS: tl.constexpr,
    BLOCK: tl.constexpr,
    PART: tl.constexpr,
):
    """Policy, value, PPO's losses, and the gradients back to the hidden layer.

    hidden (count, H): before its ReLU, bfloat16; of_hidden: the loss's gradient there. The rest is of a rollout, of
    which `index` (count,) names the samples. partials (programs, OUTS * H + OUTS + H + 8): each program's sums for the
    gradients of weights (OUTS, H) and biases (OUTS,) of policy (A rows), value (one row) and nothing, and of the hidden
    layer's bias; and its share of the means of six figures, of LOSSES in ppo_lite.py. Columns of `hidden` are read PART
    at a time, which is all that registers hold.
    """
    out = tl.arange(0, OUTS)
    sample = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = sample < count
    bias = tl.load(policy_bias + out, mask=out < A, other=0) + tl.load(value_bias + out * 0, mask=out == A, other=0)
    outputs = tl.zeros((BLOCK, OUTS), tl.float32) + bias[None, :]
    for first in range(0, H, PART):
        col = first + tl.arange(0, PART)
        found = tl.load(hidden + sample[:, None] * H + col[None, :], mask=inside[:, None], other=0)
        seen = tl.maximum(found.to(tl.float32), 0.0)
        weight = _of_heads(policy_weight, value_weight, out, col, A, H)
        outputs = tl.dot(seen, tl.trans(weight), outputs, input_precision="tf32x3")
    row = tl.load(index + sample, mask=inside, other=0)
    advantage = (tl.load(advantages + row, mask=inside, other=0) - tl.load(moments)) / tl.load(moments + 1)
    action = tl.load(actions + row, mask=inside, other=0)
    old_logprob = tl.load(old_logprobs + row, mask=inside, other=0)
    of_outputs, policy_loss, entropy, old_kl, kl, far = _policy(
        outputs, action, old_logprob, advantage, out, A, clip_coef, entropy_coef
    )
    values = tl.sum(tl.where((out == A)[None, :], outputs, 0.0), 1)
    old_value = tl.load(old_values + row, mask=inside, other=0)
    of_value, value_loss = _value(values, old_value, tl.load(returns + row, mask=inside, other=0), value_clip, HAS_CLIP)
    of_outputs = tl.where((out == A)[None, :], value_coef * of_value[:, None], of_outputs)
    share = tl.where(inside, 1.0 / count, 0.0)
    of_outputs *= share[:, None]
    partials += tl.program_id(0) * (OUTS * H + OUTS + H + 8)
    for first in range(0, H, PART):
        col = first + tl.arange(0, PART)
        at = sample[:, None] * H + col[None, :]
        seen = tl.maximum(tl.load(hidden + at, mask=inside[:, None], other=0).to(tl.float32), 0.0)
        weight = _of_heads(policy_weight, value_weight, out, col, A, H)
        back = tl.where(seen > 0, tl.dot(of_outputs, weight, input_precision="tf32x3"), 0.0).to(tl.bfloat16)
        tl.store(of_hidden + at, back, mask=inside[:, None])
        of_weight = tl.dot(tl.trans(of_outputs), seen, input_precision="tf32x3")
        tl.store(partials + out[:, None] * H + col[None, :], of_weight)
        tl.store(partials + OUTS * H + OUTS + col, tl.sum(back.to(tl.float32), 0))
    tl.store(partials + OUTS * H + out, tl.sum(of_outputs, 0))
    figures = partials + OUTS * H + OUTS + H
    tl.store(figures, tl.sum(policy_loss * share, 0))
    tl.store(figures + 1, tl.sum(value_loss * share, 0))
    tl.store(figures + 2, tl.sum(entropy * share, 0))
    tl.store(figures + 3, tl.sum(old_kl * share, 0))
    tl.store(figures + 4, tl.sum(kl * share, 0))
    tl.store(figures + 5, tl.sum(far * share, 0))


@triton.jit
def _values(tensors, number, PART: tl.constexpr):
    """The address of a tensor's part: 0 gradient, 1 weight, 2 and 3 Adam's moments, 4 its count of steps."""
    return tl.load(tensors + 6 * number + PART).to(tl.pointer_type(tl.float32))


@triton.jit
def gradient_squares(tensors, blocks, squares, BLOCK: tl.constexpr):
    """squares (programs,): the sum of the squares of each block's gradients; counts the step. tensors (n, 6): the
    addresses as in `_values`, and the number of values; blocks (programs, 2): the tensor and the first value."""
    program = tl.program_id(0)
    number = tl.load(blocks + 2 * program)
    first = tl.load(blocks + 2 * program + 1)
    at = first + tl.arange(0, BLOCK)
    found = tl.load(_values(tensors, number, 0) + at, mask=at < tl.load(tensors + 6 * number + 5), other=0)
    tl.store(squares + program, tl.sum(found * found, 0))
    if first == 0:
        step = _values(tensors, number, 4)
        tl.store(step, tl.load(step) + 1)


@triton.jit(do_not_specialize=["programs"])
def clipped_adam(
    tensors,
    blocks,
    squares,
    lr,
    norm,
    programs,
    most_norm,
    log_beta1,
    rest1,
    log_beta2,
    rest2,
    eps,
    BLOCK: tl.constexpr,
):
    """Adam's step for each block, with the gradients scaled so that their norm is at most most_norm; norm (): before
    that. log_beta: the logarithms of Adam's betas; rest: 1 - beta."""
    total = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, programs, BLOCK):
        part = begin + tl.arange(0, BLOCK)
        total += tl.load(squares + part, mask=part < programs, other=0)
    length = tl.sqrt(tl.sum(total, 0))
    program = tl.program_id(0)
    if program == 0:
        tl.store(norm, length)
    number = tl.load(blocks + 2 * program)
    at = tl.load(blocks + 2 * program + 1) + tl.arange(0, BLOCK)
    inside = at < tl.load(tensors + 6 * number + 5)
    step = tl.load(_values(tensors, number, 4))
    gradient = tl.load(_values(tensors, number, 0) + at, mask=inside) * tl.minimum(most_norm / (length + 1e-6), 1.0)
    mean = tl.load(_values(tensors, number, 2) + at, mask=inside)
    square = tl.load(_values(tensors, number, 3) + at, mask=inside)
    mean += rest1 * (gradient - mean)
    square += rest2 * (gradient * gradient - square)
    tl.store(_values(tensors, number, 2) + at, mean, mask=inside)
    tl.store(_values(tensors, number, 3) + at, square, mask=inside)
    size = tl.load(lr) / (1 - tl.exp(step * log_beta1))
    divisor = tl.sqrt(square) / tl.sqrt(1 - tl.exp(step * log_beta2)) + eps
    weight = tl.load(_values(tensors, number, 1) + at, mask=inside)
    tl.store(_values(tensors, number, 1) + at, weight - size * mean / divisor, mask=inside)
