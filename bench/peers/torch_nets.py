"""The works as PyTorch modules, layer by layer those of cli/architectures; channels come before the
places of images and of sound."""
import torch
from torch import nn

import peer


class Residual(nn.Module):
    def __init__(self, body, shortcut=None, relu=True):
        super().__init__()
        self.body, self.shortcut = body, shortcut
        self.relu = nn.ReLU(inplace=True) if relu else None

    def forward(self, x):
        y = self.body(x) + (self.shortcut(x) if self.shortcut else x)
        return self.relu(y) if self.relu else y


def unit(inputs, outputs, kernel, stride=1, bias=False, groups=1, act=None):
    made = [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=bias, groups=groups),
        nn.BatchNorm2d(outputs),
    ]
    return made + ([act(inplace=True)] if act else [])


def head(channels, classes):
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]


# ---- images --------------------------------------------------------------------------------------


def mnist_cnn(classes):
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.5), nn.Linear(1600, classes),
    )  # fmt: skip


def resnet18(classes):
    net = unit(3, 64, 7, 2, act=nn.ReLU) + [nn.MaxPool2d(3, 2, 1)]
    last = 64
    for filters in (64, 128, 256, 512):
        for i in range(2):
            stride = 2 if filters > 64 and i == 0 else 1
            body = unit(last, filters, 3, stride, act=nn.ReLU) + unit(filters, filters, 3)
            shortcut = nn.Sequential(*unit(last, filters, 1, 2)) if stride == 2 else None
            net.append(Residual(nn.Sequential(*body), shortcut))
            last = filters
    return nn.Sequential(*net, *head(512, classes))


def resnet50(classes):
    net = unit(3, 64, 7, 2, bias=True, act=nn.ReLU) + [nn.MaxPool2d(3, 2, 1)]
    last = 64
    for filters, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for i in range(blocks):
            stride = 2 if filters > 64 and i == 0 else 1
            body = (
                unit(last, filters, 1, stride, bias=True, act=nn.ReLU)
                + unit(filters, filters, 3, bias=True, act=nn.ReLU)
                + unit(filters, 4 * filters, 1, bias=True)
            )
            wide = unit(last, 4 * filters, 1, stride, bias=True)
            shortcut = nn.Sequential(*wide) if i == 0 else None
            net.append(Residual(nn.Sequential(*body), shortcut))
            last = 4 * filters
    return nn.Sequential(*net, *head(2048, classes))


def mobilenetv2(classes):
    rows = [  # expansion, filters, blocks, stride
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
        (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ]  # fmt: skip
    net = unit(3, 32, 3, 2, act=nn.ReLU6)
    last = 32
    for expansion, filters, blocks, first in rows:
        for i in range(blocks):
            stride, wide = first if i == 0 else 1, expansion * last
            body = unit(last, wide, 1, act=nn.ReLU6) if expansion > 1 else []
            body += unit(wide, wide, 3, stride, groups=wide, act=nn.ReLU6)
            body = nn.Sequential(*body, *unit(wide, filters, 1))
            net.append(Residual(body, relu=False) if stride == 1 and last == filters else body)
            last = filters
    return nn.Sequential(*net, *unit(320, 1280, 1, act=nn.ReLU6), *head(1280, classes))


class Beside(nn.Module):
    """What a dense block adds to the channels that it is given."""

    def __init__(self, inputs, growth=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(inputs), nn.ReLU(inplace=True),
            *unit(inputs, 4 * growth, 1, act=nn.ReLU),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
        )  # fmt: skip

    def forward(self, x):
        return torch.cat([x, self.body(x)], 1)


def densenet121(classes):
    net, last = unit(3, 64, 7, 2, act=nn.ReLU) + [nn.MaxPool2d(3, 2, 1)], 64
    for stage, blocks in enumerate((6, 12, 24, 16)):
        if stage:
            halved = nn.Conv2d(last, last // 2, 1, bias=False)
            net += [nn.BatchNorm2d(last), nn.ReLU(inplace=True), halved, nn.AvgPool2d(2)]
            last //= 2
        for _ in range(blocks):
            net.append(Beside(last))
            last += 32
    return nn.Sequential(*net, nn.BatchNorm2d(last), nn.ReLU(inplace=True), *head(last, classes))


class Normalize(nn.Module):
    """Keras's Normalization of channels, whose mean and variance are not trained; given ones are
    constants, others weights."""

    def __init__(self, mean, variance, given):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=not given)
        self.register_buffer("variance", torch.tensor(variance).view(-1, 1, 1), persistent=not given)

    def forward(self, x):
        return (x - self.mean) / self.variance.sqrt()


class Excite(nn.Module):
    """Each channel times a number from 0 to 1 that depends on the means of all channels."""

    def __init__(self, channels, narrow):
        super().__init__()
        self.factors = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, narrow, 1), nn.SiLU(inplace=True),
            nn.Conv2d(narrow, channels, 1), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x):
        return x * self.factors(x)


class DropRows(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        if not self.training or not self.rate:
            return x
        kept = torch.empty(len(x), 1, 1, 1, dtype=x.dtype, device=x.device).bernoulli_(1 - self.rate)
        return x * kept / (1 - self.rate)


def efficientnetb0(classes):
    rows = [  # kernel, blocks, filters, expansion, stride
        (3, 1, 16, 1, 1), (3, 2, 24, 6, 2), (5, 2, 40, 6, 2), (3, 3, 80, 6, 2),
        (5, 3, 112, 6, 1), (5, 4, 192, 6, 2), (3, 1, 320, 6, 1),
    ]  # fmt: skip
    net = [Normalize([0.0] * 3, [1.0] * 3, False), *unit(3, 32, 3, 2, act=nn.SiLU)]
    last, count = 32, 0
    for kernel, blocks, filters, expansion, first in rows:
        for i in range(blocks):
            stride, wide = first if i == 0 else 1, expansion * last
            body = unit(last, wide, 1, act=nn.SiLU) if expansion > 1 else []
            body += unit(wide, wide, kernel, stride, groups=wide, act=nn.SiLU)
            body += [Excite(wide, last // 4), *unit(wide, filters, 1)]
            if stride == 1 and last == filters:
                net.append(Residual(nn.Sequential(*body, DropRows(0.2 * count / 16)), relu=False))
            else:
                net += body
            last, count = filters, count + 1
    net += unit(320, 1280, 1, act=nn.SiLU)
    return nn.Sequential(*net, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, classes))


class Move(nn.Module):
    """Channels to the end, or back."""

    def __init__(self, *order):
        super().__init__()
        self.order = order

    def forward(self, x):
        return x.permute(self.order)


class Scale(nn.Module):
    def __init__(self, channels, value):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((channels,), value))

    def forward(self, x):
        return x * self.gamma


def channel_norm(channels):
    return [Move(0, 2, 3, 1), nn.LayerNorm(channels, eps=1e-6), Move(0, 3, 1, 2)]


def convnext_block(channels):
    body = nn.Sequential(
        nn.Conv2d(channels, channels, 7, padding=3, groups=channels),
        Move(0, 2, 3, 1), nn.LayerNorm(channels, eps=1e-6),
        nn.Linear(channels, 4 * channels), nn.GELU(), nn.Linear(4 * channels, channels),
        Scale(channels, 1e-6), Move(0, 3, 1, 2),
    )  # fmt: skip
    return Residual(body, relu=False)


def convnexttiny(classes):
    net = [Normalize([0.485, 0.456, 0.406], [0.052441, 0.050176, 0.050625], True)]
    last = 96
    net += [nn.Conv2d(3, last, 4, 4), *channel_norm(last)]
    for channels, blocks in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if channels > last:
            net += [*channel_norm(last), nn.Conv2d(last, channels, 2, 2)]
        net += [convnext_block(channels) for _ in range(blocks)]
        last = channels
    norm = nn.LayerNorm(last, eps=1e-6)
    return nn.Sequential(*net, nn.AdaptiveAvgPool2d(1), nn.Flatten(), norm, nn.Linear(last, classes))


def unet(classes):
    def separable(inputs, filters):
        depthwise = nn.Conv2d(inputs, inputs, 3, padding=1, bias=False, groups=inputs)
        return nn.Sequential(depthwise, nn.Conv2d(inputs, filters, 1))

    def transposed(inputs, filters):
        return nn.ConvTranspose2d(inputs, filters, 3, padding=1)

    def body(convolution, inputs, filters, last):
        first, second = convolution(inputs, filters), convolution(filters, filters)
        return nn.Sequential(
            nn.ReLU(), first, nn.BatchNorm2d(filters),
            nn.ReLU(inplace=True), second, nn.BatchNorm2d(filters), last,
        )  # fmt: skip

    net, last = [nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(inplace=True)], 32
    for filters in (64, 128, 256):
        down = body(separable, last, filters, nn.MaxPool2d(3, 2, 1))
        net.append(Residual(down, nn.Conv2d(last, filters, 1, 2), relu=False))
        last = filters
    for filters in (256, 128, 64, 32):
        up = body(transposed, last, filters, nn.Upsample(scale_factor=2))
        beside = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(last, filters, 1))
        net.append(Residual(up, beside, relu=False))
        last = filters
    return nn.Sequential(*net, nn.Conv2d(last, classes, 3, padding=1))


# ---- sound and texts -----------------------------------------------------------------------------


def conv1d(classes):
    net, last = [], 1
    for filters, convs in ((16, 2), (32, 2), (64, 3), (128, 3), (128, 3)):
        body = [nn.Conv1d(last, filters, 3, padding=1)]
        for _ in range(convs - 1):
            body += [nn.ReLU(inplace=True), nn.Conv1d(filters, filters, 3, padding=1)]
        net += [Residual(nn.Sequential(*body), nn.Conv1d(last, filters, 1)), nn.MaxPool1d(2)]
        last = filters
    dense = [nn.Linear(128 * 83, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU()]
    return nn.Sequential(*net, nn.AvgPool1d(3), nn.Flatten(), *dense, nn.Linear(128, classes))


class TextLstm(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.embedding = nn.Embedding(peer.VOCABULARY["lstm"], 128)
        self.lstm = nn.LSTM(128, 64, num_layers=2, bidirectional=True, batch_first=True)
        for name, w in self.lstm.named_parameters():
            if name.startswith("bias_hh"):  # PyTorch has two biases that are added; Keras has one
                nn.init.zeros_(w).requires_grad_(False)
        self.last, self.onednn = nn.Linear(128, classes), True

    def over_time(self, x):
        if self.onednn:
            try:
                return self.lstm(x)
            except RuntimeError:  # it has no LSTM of this type for this processor
                self.onednn = False
        with torch.backends.mkldnn.flags(enabled=False):
            return self.lstm(x)

    def forward(self, x):
        _, (states, _) = self.over_time(self.embedding(x))
        return self.last(torch.cat([states[-2], states[-1]], 1))


class TokenAndPlace(nn.Module):
    """The sum of two tables: one for each token, one for each place."""

    def __init__(self, vocabulary, length, width):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.place = nn.Parameter(0.02 * torch.randn(length, width))

    def forward(self, x):
        return self.token(x) + self.place


class Gpt(nn.Module):
    def __init__(self, classes, width=384, heads=6, blocks=6):
        super().__init__()
        (length,) = peer.PLACES["gpt"]
        self.embedding = TokenAndPlace(peer.VOCABULARY["gpt"], length, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(blocks)
        )
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, classes)
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x, self.mask.to(x.dtype), is_causal=True)
        return self.last(self.norm(x)).transpose(1, 2)


class Attention(nn.Module):
    """Heads as wide as the input, which nn.MultiheadAttention cannot have."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.inputs, self.output = nn.Linear(width, 3 * heads * width), nn.Linear(heads * width, width)

    def forward(self, x):
        rows, length, width = x.shape
        parts = self.inputs(x).view(rows, length, 3, self.heads, width).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(*parts)
        return self.output(y.transpose(1, 2).reshape(rows, length, -1))


class TextTransformer(nn.Module):
    def __init__(self, classes, width=32, heads=2):
        super().__init__()
        (length,), vocabulary = peer.WORKS["transformer"][0], peer.VOCABULARY["transformer"]
        self.embedding = TokenAndPlace(vocabulary, length, width)
        self.attention = nn.Sequential(Attention(width, heads), nn.Dropout(0.1))
        dense = [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)]
        self.dense = nn.Sequential(*dense, nn.Dropout(0.1))
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=1e-6) for _ in range(2))
        self.last = nn.Sequential(
            nn.Dropout(0.1), nn.Linear(width, 20), nn.ReLU(), nn.Dropout(0.1), nn.Linear(20, classes)
        )

    def forward(self, x):
        x = self.embedding(x)
        x = self.norms[0](x + self.attention(x))
        x = self.norms[1](x + self.dense(x))
        return self.last(x.mean(1))


# ---- all -----------------------------------------------------------------------------------------


def mlp(classes):
    hidden = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU()]
    return nn.Sequential(*hidden, nn.Linear(512, classes))


NETS = {
    "mlp": mlp,
    "mnist-cnn": mnist_cnn,
    "resnet18": resnet18,
    "resnet50": resnet50,
    "mobilenetv2": mobilenetv2,
    "lstm": TextLstm,
    "gpt": Gpt,
    "transformer": TextTransformer,
    "unet": unet,
    "efficientnetb0": efficientnetb0,
    "densenet121": densenet121,
    "convnexttiny": convnexttiny,
    "conv1d": conv1d,
}


def loss(work):
    """Of logits [B, classes, ...] and labels [B, ...]."""
    if peer.WORKS[work][1] > 1:
        return nn.functional.cross_entropy
    return lambda logits, y: nn.functional.binary_cross_entropy_with_logits(logits[:, 0], y.float())


def build(work):
    return NETS[work](peer.WORKS[work][1])


def count(model):
    """How many numbers are trained, and how many there are with moving statistics."""
    trained = sum(w.numel() for w in model.parameters() if w.requires_grad)
    saved = model.state_dict()
    still = sum(b.numel() for n, b in model.named_buffers() if n in saved and b.is_floating_point())
    return trained, trained + still
