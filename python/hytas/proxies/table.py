"""The table of proxies. It imports no torch, so that names, options and help are quick to show.

A new proxy is one function (formulas.py) and one line here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hytas.plugins import fill
from hytas.proxies import formulas, no_pass

# The pass that a proxy reads; proxies of one pass share its forward and backward.
NO_PASS, DATA, ONES = "none", "data", "ones"
# The proxy gets the whole network, patches and labels.
RESOURCE_NETWORK = "network"
# A pass with the weights of a trained supernet.
TRAINED = "trained"
# Requirements beyond activations and gradients: only the forward pass; the gradient by the input;
# second derivatives; a second, perturbed network.
FORWARD, INPUT, CURVATURE, PERTURBED = "forward", "input", "curvature", "perturbed"

# The first value is the default.
PARTS = ("sum", "log", "msa", "mlp")
LAYERS = ("paper", "all")
SIGN = ("none", "weights", "released")


@dataclass(frozen=True)
class Proxy:
    """One line of the table.

    Attributes:
        function: with a pass, a function of one layer record (`formulas.py`); without a pass, of
            the architecture, its shape and the seed; for "network", of the untrained network,
            patches and labels. Its docstring is the documentation.
        pass_name: the pass that it reads: "data" (labelled patches, cross-entropy), "ones" (one
            patch of ones, sum of the logits), "trained" (one with the weights of a supernet),
            "network" (a pass that the function runs) or "none".
        options: option -> allowed values, the first being the default.
        finish: function of the sum over the layers that returns the score; None for the sum.
        extra: requirement of the pass beyond activations and gradients.
        kinds: the kinds of layer that the proxy reads when its option `layers` is not "all".
        sample_grads: whether it reads the gradients of each sample.
        positive: options and their values with which all terms are positive, so that their
            logarithm exists.
        all_tokens: whether it also reads tokens that no layer reads; the last layer of a stream
            then computes all tokens, in a separate pass.
        weights_only: whether it reads weights and their gradients alone, of the pass of ones.
        nuclear_norms: whether it reads the nuclear norms of weights and gradients.
        compares_depths: whether candidates of a race are ranked by it across depths; by most
            proxies deeper networks have larger scores, whether they are better or not.
    """

    function: Callable[..., Any]
    pass_name: str = DATA
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    finish: Callable[..., Any] | None = None
    extra: str = ""
    kinds: tuple[str, ...] = formulas.LINEAR
    sample_grads: bool = False
    all_tokens: bool = False
    weights_only: bool = False
    nuclear_norms: bool = False
    compares_depths: bool = False
    positive: Mapping[str, str] = field(default_factory=dict)

    @property
    def needs_data(self) -> bool:
        """Whether it reads labelled patches."""
        return self.pass_name in (DATA, RESOURCE_NETWORK)

    @property
    def needs_supernet(self) -> bool:
        """Whether it scores with the weights of a supernet."""
        return self.pass_name == TRAINED

    @property
    def observes(self) -> bool:
        """Whether it reads a pass of a network with its initial weights."""
        return self.pass_name in (DATA, ONES)

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return summary(self.function)


def summary(function: Callable[..., Any]) -> str:
    """The first line of a function's documentation."""
    return (function.__doc__ or "").strip().splitlines()[0]


PROXIES: dict[str, Proxy] = {
    "grad_norm": Proxy(formulas.grad_norm, options={"parts": PARTS}),
    "snip": Proxy(formulas.snip, options={"parts": PARTS}),
    "grasp": Proxy(formulas.grasp, extra=CURVATURE, kinds=("curvature",)),
    "synflow": Proxy(
        formulas.synflow,
        ONES,
        {"sign": SIGN, "parts": PARTS, "terms": ("signed", "absolute")},
        weights_only=True,
        positive={"terms": "absolute"},
    ),
    "logsynflow": Proxy(
        formulas.logsynflow,
        ONES,
        {"sign": SIGN, "parts": PARTS, "domain": ("formula", "absolute")},
        weights_only=True,
        positive={"domain": "absolute"},
    ),
    "fisher": Proxy(formulas.fisher, options={"parts": PARTS}),
    "jacob_cov": Proxy(formulas.jacob_cov, extra=INPUT, kinds=("input",)),
    "naswot": Proxy(
        formulas.naswot,
        finish=formulas.log_determinant,
        extra=FORWARD,
        kinds=("fc1",),
        all_tokens=True,
    ),
    "dss": Proxy(
        formulas.dss,
        ONES,
        {"sign": SIGN, "parts": PARTS, "layers": LAYERS},
        kinds=formulas.MSA + formulas.MLP,
        weights_only=True,
        nuclear_norms=True,
    ),
    "zico": Proxy(formulas.zico, sample_grads=True),
    "zico_pp": Proxy(formulas.zico_pp),
    "croze": Proxy(formulas.croze, extra=PERTURBED, all_tokens=True),
    "t_cet": Proxy(
        formulas.t_cet,
        options={"saliency": tuple(formulas.SALIENCIES)},
        kinds=("fc1",),
        all_tokens=True,
    ),
    "ntk": Proxy(formulas.ntk, RESOURCE_NETWORK),
    "regions": Proxy(
        formulas.regions,
        finish=formulas.count_regions,
        extra=FORWARD,
        kinds=("fc1",),
        all_tokens=True,
    ),
    "params": Proxy(no_pass.params, NO_PASS),
    "macs": Proxy(no_pass.macs, NO_PASS),
    "depth-embed": Proxy(no_pass.depth_embed, NO_PASS),
    "width": Proxy(no_pass.width, NO_PASS, compares_depths=True),
    "random": Proxy(no_pass.random, NO_PASS),
    "inherited": Proxy(no_pass.inherited, TRAINED),
}
fill("proxy", PROXIES, lambda name, entry: Proxy(entry[0], **entry[1]))


def rank_mean(columns: Sequence[Sequence[float] | NDArray[np.float64]]) -> NDArray[np.float64]:
    """Mean of the ranks that the proxies give, in (0, 1]; larger is better.

    NaN where a proxy failed. A rank is relative to all architectures so far: a search passes all of
    them, and updates its engine with the ranks that have changed.

    Args:
        columns: of each proxy the scores (n,) of the same architectures.
    """
    from scipy.stats import rankdata

    scores = np.array(columns, np.float64)
    failed = np.isnan(scores).sum(axis=1, keepdims=True)  # they rank below every number
    # Sums of whole and half numbers are exact: equal architectures stay equal.
    total: NDArray[np.float64] = (failed + rankdata(scores, axis=1, nan_policy="omit")).sum(axis=0)
    return total / (len(columns) * max(1, len(total)))


COMBINATIONS: dict[str, Callable[..., Any]] = {"rank-mean": rank_mean}
"""Name -> function of the columns of several proxies; its docstring is the documentation."""
fill("objective", COMBINATIONS)
SYNONYMS = {"te-score": "rank-mean(ntk,regions)"}
"""Name -> combination."""
