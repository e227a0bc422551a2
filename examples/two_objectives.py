"""Search for networks that are accurate and small: a front of trained accuracy and parameters.

hytas search --plugin examples/two_objectives.py --strategy two-objectives --data indian_pines \
  --budget 200K-params
"""

import random

from hytas import plugins

STEPS = 200
"""Optimiser steps of each candidate."""
FIRST = 8
"""Random candidates before the first offspring."""


@plugins.strategy("two-objectives")
class TwoObjectives:
    """Vary candidates that no other beats in both accuracy and parameters (SEMO)."""

    trains = True

    def __init__(self, feasible, seed):
        self.feasible, self.random = feasible, random.Random(seed)
        self.front = []  # (architecture, validation accuracy, parameters)
        self.seen = 0

    def ask(self, count):
        """Return random candidates at first, then one offspring of each drawn parent."""
        if self.seen < FIRST or not self.front:
            genomes = self.feasible.sample(count, self.random.getrandbits(32))
            return [(one, STEPS) for one in self.feasible.space.unpack(genomes)]
        return [(self.offspring(), STEPS) for _ in range(count)]

    def offspring(self):
        """Return a member of the front with another value of one gene."""
        parent, _, _ = self.random.choice(self.front)
        gene = self.random.choice([one for one in self.feasible.space.genes if not one["per"]])
        return {**parent, gene["name"]: self.random.choice(gene["values"])}

    def tell(self, asked, figures):
        """Add each candidate to the front, and remove those that it beats."""
        for (architecture, _), reached in zip(asked, figures, strict=True):
            self.seen += 1
            if "accuracy" not in reached:
                continue
            new = architecture, reached["accuracy"], reached["params"]
            if not any(self.beats(one, new) for one in self.front):
                self.front = [one for one in self.front if not self.beats(new, one)] + [new]

    @staticmethod
    def beats(one, other):
        """Return whether `one` is as accurate and as small, at least."""
        return one[1] >= other[1] and one[2] <= other[2]
