"""Proof under fire: random and exhaustive failures, then the books are compared. See docs/proof.md.

- `invariants`: what must hold, read from the three books with code of its own
- `stage`: many actors in one thread, one step at a time, in an order that a seed decides
- `simulation`: the real definition and functions on moto, broken at every boundary
- `explorer`: every interleaving of a few actors, from the same definition and functions
- `campaign`: the whole local stack under fire
"""
