"""The works as PyTorch modules, layer by layer those of cli/architectures; inputs are NCHW."""
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


class TextLstm(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 128)
        self.lstm = nn.LSTM(128, 64, num_layers=2, bidirectional=True, batch_first=True)
        self.last = nn.Linear(128, 1)

    def forward(self, x):
        _, (states, _) = self.lstm(self.embedding(x))
        return self.last(torch.cat([states[-2], states[-1]], 1))


class Gpt(nn.Module):
    def __init__(self, vocabulary, length, width=384, heads=6, blocks=6):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.place = nn.Parameter(0.02 * torch.randn(length, width))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(blocks)
        )
        self.norm, self.last = nn.LayerNorm(width), nn.Linear(width, vocabulary)
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        x = self.token(x) + self.place
        for block in self.blocks:
            x = block(x, self.mask.to(x.dtype), is_causal=True)
        return self.last(self.norm(x)).transpose(1, 2)


def loss(work):
    """Of logits [B, classes, ...] and labels [B, ...]."""
    if peer.WORKS[work][1] > 1:
        return nn.functional.cross_entropy
    return lambda logits, y: nn.functional.binary_cross_entropy_with_logits(logits[:, 0], y.float())


def build(work):
    classes = peer.WORKS[work][1]
    if work == "mlp":
        hidden = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU()]
        return nn.Sequential(*hidden, nn.Linear(512, classes))
    if work == "mnist-cnn":
        return nn.Sequential(
            nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.5), nn.Linear(1600, classes),
        )  # fmt: skip
    if work == "lstm":
        return TextLstm(peer.VOCABULARY[work])
    if work == "gpt":
        return Gpt(peer.VOCABULARY[work], *peer.PLACES[work])
    nets = {"resnet18": resnet18, "resnet50": resnet50, "mobilenetv2": mobilenetv2}
    if work not in nets:
        raise peer.Unsupported(f"{work}: not written for PyTorch")
    return nets[work](classes)
