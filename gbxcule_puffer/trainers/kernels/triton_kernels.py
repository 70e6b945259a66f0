"""Triton kernels of the first two convolutions of all networks, each with its ReLU: convolutions.py.

cuDNN is made for many channels; here there are 1 to 32. A program computes BLOCK rows of a product. A row is a position
of the output; its columns are the inputs of the convolution at that position, read directly from memory. Products are
in bfloat16, sums in float32. Measured times: docs/scale.md.
"""

# pyright: reportMissingImports=false, reportIndexIssue=false, reportOperatorIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false

import triton
import triton.language as tl

ANY_SIZE = ["positions", "steps"]  # a kernel serves all numbers of pictures


@triton.jit
def _words(
    pixels,
    index,
    position,
    positions,
    OH: tl.constexpr,
    OW: tl.constexpr,
    COUNT: tl.constexpr,
    ROWS: tl.constexpr,
    WORDS: tl.constexpr,
    COLS: tl.constexpr,
):
    """The pixels at each position, 8 rows of 2 words, of COUNT pictures of ROWS rows of WORDS words; (BLOCK, COLS).
    With an `index`, the positions are of the pictures that it names, in this order."""
    col = tl.arange(0, COLS)
    picture = position // (OH * OW)
    if index is not None:
        picture = tl.load(index + picture, mask=position < positions, other=0).to(tl.int32)
    corner = picture * (COUNT * ROWS * WORDS) + position % (OH * OW) // OW * (4 * WORDS) + position % OW
    word = col // 16 * (ROWS * WORDS) + col // 2 % 8 * WORDS + col % 2
    seen = (position < positions)[:, None] & (col < 16 * COUNT)[None, :]
    return tl.load(pixels + corner[:, None] + word[None, :], mask=seen, other=0)


@triton.jit
def _byte(words, NUMBER: tl.constexpr):
    """One of the four pixels of each word, as bfloat16, which can represent all 256 values."""
    return ((words >> (8 * NUMBER)) & 0xFF).to(tl.bfloat16)


@triton.jit(do_not_specialize=ANY_SIZE)
def pixels_forward(
    pixels,
    index,
    weight,
    bias,
    output,
    positions,
    OH: tl.constexpr,
    OW: tl.constexpr,
    COUNT: tl.constexpr,
    ROWS: tl.constexpr,
    WORDS: tl.constexpr,
    COLS: tl.constexpr,
    O: tl.constexpr,  # noqa: E741  output channels
    BLOCK: tl.constexpr,
):
    """output (positions, O) from pixels (n, COUNT, ROWS, WORDS) and weight (4, 16 * COUNT, O), one part for each pixel
    of a word."""
    position = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    words = _words(pixels, index, position, positions, OH, OW, COUNT, ROWS, WORDS, COLS)
    col = tl.arange(0, COLS)[:, None]
    o = tl.arange(0, O)[None, :]
    total = tl.zeros((BLOCK, O), tl.float32) + tl.load(bias + o)
    for number in tl.static_range(4):
        part = tl.load(weight + (number * 16 * COUNT + col) * O + o, mask=col < 16 * COUNT, other=0)
        total = tl.dot(_byte(words, number), part, total)
    tl.store(
        output + position[:, None] * O + o, tl.maximum(total, 0).to(tl.bfloat16), mask=(position < positions)[:, None]
    )


@triton.jit
def _behind_relu(gradient, output, at, is_inside):
    """The gradient before the ReLU with the given output."""
    found = tl.load(gradient + at, mask=is_inside, other=0)
    return tl.where(tl.load(output + at, mask=is_inside, other=0) > 0, found, 0.0).to(tl.bfloat16)


@triton.jit(do_not_specialize=ANY_SIZE)
def pixels_weights(
    pixels,
    index,
    output,
    gradient,
    partials,
    positions,
    steps,
    OH: tl.constexpr,
    OW: tl.constexpr,
    COUNT: tl.constexpr,
    ROWS: tl.constexpr,
    WORDS: tl.constexpr,
    COLS: tl.constexpr,
    O: tl.constexpr,  # noqa: E741
    BLOCK: tl.constexpr,
):
    """partials (programs, 64 * COUNT * O + O): each program's sum over `steps` blocks for the gradients of the weight,
    (4, 16 * COUNT, O), and of the bias, (O,)."""
    program = tl.program_id(0)
    o = tl.arange(0, O)
    sum0 = tl.zeros((COLS, O), tl.float32)
    sum1 = tl.zeros((COLS, O), tl.float32)
    sum2 = tl.zeros((COLS, O), tl.float32)
    sum3 = tl.zeros((COLS, O), tl.float32)
    sum_of_bias = tl.zeros((O,), tl.float32)
    for step in range(steps):
        position = (program * steps + step) * BLOCK + tl.arange(0, BLOCK)
        words = tl.trans(_words(pixels, index, position, positions, OH, OW, COUNT, ROWS, WORDS, COLS))
        found = _behind_relu(gradient, output, position[:, None] * O + o[None, :], (position < positions)[:, None])
        sum0 = tl.dot(_byte(words, 0), found, sum0)
        sum1 = tl.dot(_byte(words, 1), found, sum1)
        sum2 = tl.dot(_byte(words, 2), found, sum2)
        sum3 = tl.dot(_byte(words, 3), found, sum3)
        sum_of_bias += tl.sum(found.to(tl.float32), 0)
    col = tl.arange(0, COLS)[:, None]
    first = partials + program * (64 * COUNT + 1) * O + col * O + o[None, :]
    tl.store(first, sum0, mask=col < 16 * COUNT)
    tl.store(first + 16 * COUNT * O, sum1, mask=col < 16 * COUNT)
    tl.store(first + 32 * COUNT * O, sum2, mask=col < 16 * COUNT)
    tl.store(first + 48 * COUNT * O, sum3, mask=col < 16 * COUNT)
    tl.store(partials + (program * (64 * COUNT + 1) + 64 * COUNT) * O + o, sum_of_bias)


@triton.jit
def _by_channel(position, o, SIZE: tl.constexpr, O: tl.constexpr):  # noqa: E741
    """Where outputs (n, O, SIZE) of channel o at each position are; (O, BLOCK)."""
    return (position // SIZE * (O * SIZE) + position % SIZE)[None, :] + (o * SIZE)[:, None]


@triton.jit
def _window(
    features, position, positions, H: tl.constexpr, W: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr, C: tl.constexpr
):
    """The values at each position of features (n, H, W, C): 4x4 of them; (BLOCK, 16 * C)."""
    col = tl.arange(0, 16 * C)
    corner = position // (OH * OW) * (H * W * C) + position % (OH * OW) // OW * (2 * W * C) + position % OW * (2 * C)
    at = corner[:, None] + (col // (4 * C) * (W * C) + col % (4 * C))[None, :]
    return tl.load(features + at, mask=(position < positions)[:, None], other=0)


@triton.jit(do_not_specialize=ANY_SIZE)
def features_forward(
    features,
    weight,
    bias,
    output,
    positions,
    H: tl.constexpr,
    W: tl.constexpr,
    OH: tl.constexpr,
    OW: tl.constexpr,
    C: tl.constexpr,
    O: tl.constexpr,  # noqa: E741
    BLOCK: tl.constexpr,
):
    """output (n, O, OH, OW) from features (n, H, W, C) and weight (16 * C, O)."""
    position = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    col = tl.arange(0, 16 * C)[:, None]
    o = tl.arange(0, O)
    seen = _window(features, position, positions, H, W, OH, OW, C)
    total = tl.dot(seen, tl.load(weight + col * O + o[None, :])) + tl.load(bias + o)[None, :]
    found = tl.trans(tl.maximum(total, 0).to(tl.bfloat16))
    tl.store(output + _by_channel(position, o, OH * OW, O), found, mask=(position < positions)[None, :])


@triton.jit(do_not_specialize=ANY_SIZE)
def features_weights(
    features,
    output,
    gradient,
    before_relu,
    partials,
    positions,
    steps,
    H: tl.constexpr,
    W: tl.constexpr,
    OH: tl.constexpr,
    OW: tl.constexpr,
    C: tl.constexpr,
    O: tl.constexpr,  # noqa: E741
    BLOCK: tl.constexpr,
):
    """partials (programs, 16 * C * O + O) for the gradients of the weight, (16 * C, O), and of the bias, as in
    pixels_weights; and before_relu (positions, O), the gradient before the ReLU."""
    program = tl.program_id(0)
    o = tl.arange(0, O)
    total = tl.zeros((16 * C, O), tl.float32)
    sum_of_bias = tl.zeros((O,), tl.float32)
    for step in range(steps):
        position = (program * steps + step) * BLOCK + tl.arange(0, BLOCK)
        seen = _window(features, position, positions, H, W, OH, OW, C)
        at = _by_channel(position, o, OH * OW, O)
        found = tl.trans(_behind_relu(gradient, output, at, (position < positions)[None, :]))
        tl.store(before_relu + position[:, None] * O + o[None, :], found, mask=(position < positions)[:, None])
        total = tl.dot(tl.trans(seen), found, total)
        sum_of_bias += tl.sum(found.to(tl.float32), 0)
    col = tl.arange(0, 16 * C)[:, None]
    first = partials + program * (16 * C + 1) * O
    tl.store(first + col * O + o[None, :], total)
    tl.store(first + 16 * C * O + o, sum_of_bias)


@triton.jit(do_not_specialize=ANY_SIZE)
def features_data(
    before_relu,
    weight,
    of_features,
    positions,
    H: tl.constexpr,
    W: tl.constexpr,
    OH: tl.constexpr,
    OW: tl.constexpr,
    C: tl.constexpr,
    O: tl.constexpr,  # noqa: E741
    BLOCK: tl.constexpr,
):
    """Gradient of the features, (n, H, W, C). Each program of the second dimension does one parity of row and column:
    2x2 positions use these features, each with another part of weight (parities, 4, O, C)."""
    row = tl.program_id(1) // 2
    column = tl.program_id(1) % 2
    HALF_H: tl.constexpr = (H + 1) // 2
    HALF_W: tl.constexpr = (W + 1) // 2
    position = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    picture = position // (HALF_H * HALF_W)
    a = position % (HALF_H * HALF_W) // HALF_W
    b = position % HALF_W
    o = tl.arange(0, O)
    c = tl.arange(0, C)[None, :]
    total = tl.zeros((BLOCK, C), tl.float32)
    for part in tl.static_range(4):
        y = a - part // 2
        x = b - part % 2
        is_inside = (position < positions) & (y >= 0) & (y < OH) & (x >= 0) & (x < OW)
        at = ((picture * OH + y) * OW + x)[:, None] * O + o[None, :]
        found = tl.load(before_relu + at, mask=is_inside[:, None], other=0)
        total = tl.dot(found, tl.load(weight + ((tl.program_id(1) * 4 + part) * O + o[:, None]) * C + c), total)
    y = 2 * a + row
    x = 2 * b + column
    is_inside = (position < positions) & (y < H) & (x < W)
    tl.store(of_features + ((picture * H + y) * W + x)[:, None] * C + c, total.to(tl.bfloat16), mask=is_inside[:, None])


@triton.jit(do_not_specialize=["rows", "columns"])
def column_sums(partials, target, scales, sums, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The sum of each column of partials (rows, columns), in `sums`: with a `target` there, and times its scale."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, rows, ROWS):
        row = first + tl.arange(0, ROWS)
        is_inside = (row < rows)[:, None] & (column < columns)[None, :]
        total += tl.load(partials + row[:, None] * columns + column[None, :], mask=is_inside, other=0)
    found = tl.sum(total, 0)
    place = column
    if target is not None:
        place = tl.load(target + column, mask=column < columns, other=0)
        found *= tl.load(scales + column, mask=column < columns, other=0)
    tl.store(sums + place, found, mask=column < columns)
