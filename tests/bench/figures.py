# SPDX-License-Identifier: Apache-2.0
"""How figures are taken and printed.

Candidates take turns within a round, so that a slow spell of the machine hits all of them; ratios are taken within a
round; what is printed is the median over the rounds.
"""
import os
import statistics

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))


def show(name, value, unit):
    print("%s %.4g %s" % (name, value, unit), flush=True)


class Rounds:
    """Rows of what the candidates returned: {name: value}, one row a round. Every other round goes backwards."""

    def __init__(self, count=ROUNDS, **candidates):
        self.rows = []
        for number in range(count):
            names = list(candidates) if number % 2 == 0 else list(reversed(candidates))
            self.rows.append({name: candidates[name]() for name in names})

    def median(self, of):
        return statistics.median(of(row) for row in self.rows)

    def seconds(self, name):
        return self.median(lambda row: row[name])

    def quickest(self, *names):
        return min(names, key=self.seconds)

    def speed(self, name, reference):
        """How many times as fast as the reference (above 1: faster)."""
        return self.median(lambda row: row[reference] / row[name])

    def cost(self, name, reference):
        """How many times the reference's time (below 1: faster)."""
        return self.median(lambda row: row[name] / row[reference])
