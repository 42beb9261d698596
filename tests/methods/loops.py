"""Twelve methods once more, as slow and obvious loops over domains, pairs, rows and samples, from their papers.

Nothing here is shared with the package but the layers of the network: each loop trains the modules of a copy of the
method it is to be compared with.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, log_softmax

from longshift.methods.base import Method
from longshift.rng import Draws

Part = tuple[Tensor, Tensor]  # samples and labels of a domain
Terms = dict[str, Tensor]


class Loop:
    """A method as a loop; `copied` is a copy of the method of the package, of which only the layers are used."""

    def __init__(self, method: Method) -> None:
        self.copied: Any = copy.deepcopy(method)
        self.config: Any = method.config
        self.featurizer, self.classifier = self.copied.network.featurizer, self.copied.network.classifier
        self.adam = self.fresh()
        self.prepare()

    def prepare(self) -> None:
        """What else is needed before the first step."""

    def fresh(self, *modules: nn.Module) -> torch.optim.Adam:
        """A new Adam, by default over featurizer and classifier."""
        chosen = modules or (self.featurizer, self.classifier)
        weights = [p for module in chosen for p in module.parameters()]
        return torch.optim.Adam(weights, lr=self.config.lr, weight_decay=self.config.weight_decay)

    def logits(self, x: Tensor) -> Tensor:
        """Predictions."""
        result: Tensor = self.classifier(self.featurizer(x))
        return result

    def risks(self, parts: Sequence[Part]) -> list[Tensor]:
        """Cross-entropy of each domain."""
        return [cross_entropy(self.logits(x), y) for x, y in parts]

    def step(self, index: int, parts: Sequence[Part], draws: Draws) -> Terms:
        """One update; the terms are those before it."""
        raise NotImplementedError


def descend(loss: Tensor, *optimizers: torch.optim.Optimizer) -> None:
    """Gradient of the loss, and a step of these optimizers only."""
    for optimizer in optimizers:
        optimizer.zero_grad()
    weights = [p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]]
    loss.backward(inputs=weights)
    for optimizer in optimizers:
        optimizer.step()


def average(values: Iterable[Tensor]) -> Tensor:
    """Mean of numbers or of equal shapes."""
    listed = list(values)
    return torch.stack(listed).sum(0) / len(listed)


def pooled(parts: Sequence[Part]) -> Part:
    """All domains in one."""
    return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])


class ERM(Loop):
    def step(self, index: int, parts: Sequence[Part], draws: Draws) -> Terms:
        x, y = pooled(parts)
        loss = cross_entropy(self.logits(x), y)
        descend(loss, self.adam)
        return {"loss": loss}


class IRM(Loop):
    def slope(self, logits: Tensor, y: Tensor) -> Tensor:
        factor = torch.ones((), dtype=logits.dtype, requires_grad=True)
        return torch.autograd.grad(cross_entropy(factor * logits, y), factor, create_graph=True)[0]

    def step(self, index: int, parts: Sequence[Part], draws: Draws) -> Terms:
        if index == self.config.anneal:
            self.adam = self.fresh()
        nll = average(self.risks(parts))
        products = []
        for x, y in parts:
            logits = self.logits(x)
            products.append(self.slope(logits[::2], y[::2]) * self.slope(logits[1::2], y[1::2]))
        penalty = average(products)
        loss = nll + (self.config.irm_lambda if index >= self.config.anneal else 1) * penalty
        descend(loss, self.adam)
        return {"loss": loss, "nll": nll, "penalty": penalty}


class VREx(Loop):
    def step(self, index: int, parts: Sequence[Part], draws: Draws) -> Terms:
        if index == self.config.anneal:
            self.adam = self.fresh()
        risks = self.risks(parts)
        penalty = average([(risk - average(risks)) ** 2 for risk in risks])
        loss = average(risks) + (self.config.vrex_lambda if index >= self.config.anneal else 1) * penalty
        descend(loss, self.adam)
        return {"loss": loss, "nll": risks[-1], "penalty": penalty}


class GroupDRO(Loop):
    def step(self, index: int, parts: Sequence[Part], draws: Draws) -> Terms:
        q, risks = self.copied.q, self.risks(parts)
        for domain, risk in enumerate(risks):
            q[domain] *= torch.exp(self.config.eta * risk.detach())
        q /= q.sum()
        loss = torch.stack([weight * risk for weight, risk in zip(q, risks, strict=True)]).sum()
        descend(loss, self.adam)
        return {"loss": loss}


class Mixup(Loop):
    def step(self, index: int, parts: Sequence[Part], draws: Draws) -> Terms:
        order = draws.permutation(len(parts)).tolist()
        shares = draws.beta(self.config.alpha, self.config.alpha, len(parts))
        losses = []
        for i, share in enumerate(shares):
            (x, y), (other_x, other_y) = parts[order[i]], parts[order[(i + 1) % len(parts)]]
            logits = self.logits(share * x + (1 - share) * other_x)
            losses.append(share * cross_entropy(logits, y) + (1 - share) * cross_entropy(logits, other_y))
        loss = average(losses)
        descend(loss, self.adam)
        return {"loss": loss}


class MLDG(Loop):
    def step(self, index: int, parts: Sequence[Part], draws: Draws) -> Terms:
        order = draws.permutation(len(parts)).tolist()
        train, test = order[: -self.config.n_meta_test], order[-self.config.n_meta_test :]
        weights = self.adam.param_groups[0]["params"]
        self.adam.zero_grad()
        for weight in weights:
            weight.grad = torch.zeros_like(weight)
        losses = []
        for i, j in zip(train, itertools.cycle(test)):
            inner = Loop(self.copied)
            inner_weights = inner.adam.param_groups[0]["params"]
            first = cross_entropy(inner.logits(parts[i][0]), parts[i][1])
            first_gradients = torch.autograd.grad(first, inner_weights)
            descend(cross_entropy(inner.logits(parts[i][0]), parts[i][1]), inner.adam)
            second = cross_entropy(inner.logits(parts[j][0]), parts[j][1])
            second_gradients = torch.autograd.grad(second, inner_weights)
            for weight, a, b in zip(weights, first_gradients, second_gradients, strict=True):
                weight.grad += (a + self.config.beta * b) / len(parts)
            losses.append(first.detach() + self.config.beta * second.detach())
        self.adam.step()
        return {"loss": torch.stack(losses).sum() / len(parts)}


class Fish(Loop):
    def prepare(self) -> None:
        self.inner = (copy.deepcopy(self.featurizer), copy.deepcopy(self.classifier))
        self.inner_adam = self.fresh(*self.inner)

    def step(self, index: int, parts: Sequence[Part], draws: Draws) -> Terms:
        for inner, outer in zip(self.inner, (self.featurizer, self.classifier), strict=True):
            inner.load_state_dict(outer.state_dict())
        for x, y in parts:
            loss = cross_entropy(self.inner[1](self.inner[0](x)), y)
            descend(loss, self.inner_adam)
        for inner, outer in zip(self.inner, (self.featurizer, self.classifier), strict=True):
            for a, b in zip(inner.parameters(), outer.parameters(), strict=True):
                b.data += self.config.meta_lr * (a.data - b.data)
        return {"loss": loss}


class Fishr(Loop):
    def prepare(self) -> None:
        self.past: dict[int, Tensor] = {}

    def variance(self, x: Tensor, y: Tensor) -> Tensor:
        gradients = []
        for features, label in zip(self.featurizer(x), y, strict=True):
            loss = cross_entropy(self.classifier(features), label)
            found = torch.autograd.grad(loss, list(self.classifier.parameters()), create_graph=True)
            gradients.append(torch.cat([g.flatten() for g in found]))
        return average([(g - average(gradients)) ** 2 for g in gradients])

    def step(self, index: int, parts: Sequence[Part], draws: Draws) -> Terms:
        if index == self.config.anneal and index > 0:
            self.adam = self.fresh()
        ema, smoothed = self.config.ema, []
        for domain, (x, y) in enumerate(parts):
            now = ema * self.past.get(domain, torch.zeros(())) + (1 - ema) * self.variance(x, y)
            self.past[domain] = now.detach()
            smoothed.append(now / (1 - ema))
        middle = average(smoothed)
        penalty = average([((v - middle) ** 2).sum() / v.numel() for v in smoothed])
        nll = average(self.risks(parts))
        loss = nll + (self.config.fishr_lambda if index >= self.config.anneal else 0) * penalty
        descend(loss, self.adam)
        return {"loss": loss, "nll": nll, "penalty": penalty}


class Aligned(Loop):
    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        raise NotImplementedError

    def step(self, index: int, parts: Sequence[Part], draws: Draws) -> Terms:
        features = [self.featurizer(x) for x, _ in parts]
        loss = average(self.risks(parts))
        penalty = average(self.distance(a, b) for a, b in itertools.combinations(features, 2))
        descend(loss + self.config.gamma * penalty, self.adam)
        return {"loss": loss, "penalty": penalty}


class CORAL(Aligned):
    def covariance(self, a: Tensor) -> Tensor:
        centered = a - average(a)
        return torch.stack([torch.outer(row, row) for row in centered]).sum(0) / (len(a) - 1)

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        means = ((average(a) - average(b)) ** 2).mean()
        return means + ((self.covariance(a) - self.covariance(b)) ** 2).mean()


class MMD(Aligned):
    def kernel(self, a: Tensor, b: Tensor) -> Tensor:
        squared = [((x - y) ** 2).sum() for x in a for y in b]
        return average(torch.stack([torch.exp(-(10.0**p) * d) for p in range(-3, 4)]).sum() for d in squared)

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        return self.kernel(a, a) + self.kernel(b, b) - 2 * self.kernel(a, b)


class DANN(Loop):
    def prepare(self) -> None:
        c, layers = self.config, self.copied.discriminator.layers
        self.discriminator = nn.Sequential(layers[0], *(m for layer in layers[1:] for m in (nn.ReLU(), layer)))
        network = [*self.featurizer.parameters(), *self.classifier.parameters()]
        betas = (c.beta1, 0.9)
        self.adam_g = torch.optim.Adam(network, c.lr_g, betas, weight_decay=c.weight_decay_g)
        self.adam_d = torch.optim.Adam(layers.parameters(), c.lr_d, betas, weight_decay=c.weight_decay_d)

    def step(self, index: int, parts: Sequence[Part], draws: Draws) -> Terms:
        losses, slopes = [], []
        for domain, (x, _) in enumerate(parts):
            for features in self.featurizer(x):
                loss = cross_entropy(self.discriminator(features), torch.tensor(domain))
                (slope,) = torch.autograd.grad(loss, features, create_graph=True)
                losses.append(loss)
                slopes.append((slope**2).sum())
        disc_loss = average(losses) + self.config.grad_penalty * average(slopes)
        turns = self.config.d_steps_per_g_step
        if (index + 1) % (turns + 1) < turns:
            descend(disc_loss, self.adam_d)
            return {"disc_loss": disc_loss}
        gen_loss = average(self.risks(parts)) - self.config.dann_lambda * disc_loss
        descend(gen_loss, self.adam_g)
        return {"gen_loss": gen_loss}


class SagNet(Loop):
    def prepare(self) -> None:
        self.style: nn.Module = self.copied.style_classifier
        self.adams = [self.fresh(part) for part in (self.featurizer, self.classifier, self.style)]

    def mixed(self, features: Tensor, draws: Draws) -> Tensor:
        """Each row with a mean and a variance between its own and those of another row."""
        own, other = draws.uniform(len(features)), draws.permutation(len(features)).tolist()
        rows = []
        for i, (row, share) in enumerate(zip(features, own, strict=True)):
            partner = features[other[i]]
            mean = share * row.mean() + (1 - share) * partner.mean()
            var = share * row.var() + (1 - share) * partner.var()
            rows.append((row - row.mean()) / (row.var() + 1e-5).sqrt() * (var + 1e-5).sqrt() + mean)
        return torch.stack(rows)

    def swapped(self, features: Tensor, draws: Draws) -> Tensor:
        """Each row with the (constant) content of another row."""
        rows = []
        for row, i in zip(features, draws.permutation(len(features)).tolist(), strict=True):
            content = (features[i] - features[i].mean()) / (features[i].var() + 1e-5).sqrt()
            rows.append(content.detach() * (row.var() + 1e-5).sqrt() + row.mean())
        return torch.stack(rows)

    def step(self, index: int, parts: Sequence[Part], draws: Draws) -> Terms:
        x, y = pooled(parts)
        featurizer, content, style = self.adams
        loss_c = cross_entropy(self.classifier(self.mixed(self.featurizer(x), draws)), y)
        descend(loss_c, featurizer, content)
        loss_s = cross_entropy(self.style(self.swapped(self.featurizer(x), draws)), y)
        descend(loss_s, style)
        loss_adv = -self.config.w_adv * log_softmax(self.style(self.swapped(self.featurizer(x), draws)), 1).mean()
        descend(loss_adv, featurizer)
        return {"loss_c": loss_c, "loss_s": loss_s, "loss_adv": loss_adv}


LOOPS: dict[str, Callable[[Method], Loop]] = {
    "erm": ERM, "irm": IRM, "vrex": VREx, "groupdro": GroupDRO, "mixup": Mixup, "mldg": MLDG, "fish": Fish,
    "fishr": Fishr, "coral": CORAL, "mmd": MMD, "dann": DANN, "sagnet": SagNet,
}  # fmt: skip
