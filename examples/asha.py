"""Asynchronous successive halving on trained accuracy (ASHA; Li et al., MLSys 2020).

hytas search --plugin examples/asha.py --strategy asha --data indian_pines --budget 100K-params
"""

import json
import random

from hytas import plugins

LENGTHS = (100, 300, 900)
"""Optimiser steps of the rungs."""
FACTOR = 3
"""One of so many candidates of a rung is trained to the length of the next one."""


@plugins.strategy("asha")
class ASHA:
    """Train random candidates briefly, and the best third of each rung three times as long."""

    trains = True

    def __init__(self, feasible, seed):
        self.feasible, self.random = feasible, random.Random(seed)
        # Of each rung: text of an architecture -> validation accuracy; and those promoted.
        self.accuracy = [{} for _ in LENGTHS]
        self.promoted = [set() for _ in LENGTHS]

    def ask(self, count):
        """Promote where a rung has a candidate to spare, the longest rung first; else draw."""
        asked = []
        for rung in reversed(range(len(LENGTHS) - 1)):
            ranked = sorted(self.accuracy[rung], key=self.accuracy[rung].get, reverse=True)
            for text in ranked[: len(ranked) // FACTOR]:
                if text not in self.promoted[rung] and len(asked) < count:
                    self.promoted[rung].add(text)
                    asked.append((json.loads(text), LENGTHS[rung + 1]))
        if asked:
            return asked
        genomes = self.feasible.sample(count, self.random.getrandbits(32))
        return [(one, LENGTHS[0]) for one in self.feasible.space.unpack(genomes)]

    def tell(self, asked, figures):
        """Keep the accuracy of each training; one that failed is never promoted."""
        for (architecture, steps), reached in zip(asked, figures, strict=True):
            if steps in LENGTHS:
                rung = LENGTHS.index(steps)
                accuracy = reached.get("accuracy", 0.0)
                self.accuracy[rung][json.dumps(architecture)] = accuracy
