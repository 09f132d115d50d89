"""How the arrows of a picture find their way: Dijkstra on a lattice of tracks.

The lattice has lines through the boxes' ports and several tracks in each gutter between boxes.
A line pays for its length, for bends and for crossing others, very much for lying on another,
and little for sharing a track with one of its own group: so lines bundle that mean the same.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

Point = tuple[float, float]
Spot = tuple[int, int]  # indices into the lattice's lines
Group = tuple[str, str]  # where a line ends, and what it means
At = tuple[Spot, bool | None]  # a spot, and whether it was reached vertically

# Prices in pixels of detour.
BEND, CROSSING, OVERLAP, OFF_CENTRE = 30, 24, 900, 14
SHARED = 0.3  # of its length, for a piece that one of its own group runs along
NO_WAY = float("inf")


@dataclass(frozen=True)
class Grid:
    """The measures of a picture, in pixels: boxes in columns and rows, gutters between them."""

    columns: int
    rows: int
    box: Point  # width and height
    pitch: Point  # from one column, or row, to the next
    margin: Point
    ports: tuple[tuple[float, ...], tuple[float, ...]]  # offsets from a box's middle
    track: float  # between parallel lines of a gutter

    def middle(self, column: int, row: int) -> Point:
        """The middle of the box at this place."""
        return (
            self.margin[0] + self.box[0] / 2 + column * self.pitch[0],
            self.margin[1] + self.box[1] / 2 + row * self.pitch[1],
        )

    def lines(self, axis: int) -> list[float]:
        """The lattice's lines across `axis`: 0 for x, 1 for y."""
        count = (self.columns, self.rows)[axis]
        middles = [self.middle(number, number)[axis] for number in range(count)]
        gutter = self.pitch[axis] - self.box[axis]
        half = int((gutter / 2 - 8) // self.track)
        tracks = [number * self.track for number in range(-half, half + 1)]
        gutters = [middles[0] - self.pitch[axis] / 2]
        gutters += [middle + self.pitch[axis] / 2 for middle in middles]
        found = [middle + port for middle in middles for port in self.ports[axis]]
        found += [gutter + track for gutter in gutters for track in tracks]
        return sorted(found)


class Router:
    """Routes one line after the other; each keeps clear of those before."""

    def __init__(self, grid: Grid, boxes: dict[str, Point]) -> None:
        """`boxes` gives the middle of each."""
        self._grid = grid
        self._boxes = boxes
        self._xs, self._ys = grid.lines(0), grid.lines(1)
        self._inside: dict[Spot, str] = {
            (i, j): name
            for name, (x, y) in boxes.items()
            for i, line_x in enumerate(self._xs)
            for j, line_y in enumerate(self._ys)
            if abs(line_x - x) < grid.box[0] / 2 and abs(line_y - y) < grid.box[1] / 2
        }
        self._along: defaultdict[frozenset[Spot], set[Group]] = defaultdict(set)
        self._through: defaultdict[Spot, set[tuple[Group, bool]]] = defaultdict(set)

    def route(self, source: str, target: str, kind: str) -> tuple[Point, ...]:
        """The corners of the cheapest way, from box edge to box edge.

        Raises ValueError when there is none.
        """
        group = (target, kind)
        best: dict[At, float] = {}
        came: dict[At, At] = {}
        heap: list[tuple[float, At]] = []
        for spot, name in self._inside.items():
            if name == source:
                heapq.heappush(heap, (self._off_centre(spot, source), (spot, None)))
        while heap:
            price, at = heapq.heappop(heap)
            if price > best.get(at, NO_WAY):
                continue
            if self._inside.get(at[0]) == target:
                return self._keep(at, came, group, source, target)
            for following, upright in self._neighbours(at, source, target):
                cost = price + self._price(at, following, upright, group)
                if self._inside.get(following) == target:
                    cost += self._off_centre(following, target)
                if cost < best.get((following, upright), NO_WAY):
                    best[following, upright] = cost
                    came[following, upright] = at
                    heapq.heappush(heap, (cost, (following, upright)))
        raise ValueError(f"no way from {source} to {target}")

    def _neighbours(self, at: At, source: str, target: str) -> Iterator[tuple[Spot, bool]]:
        (i, j), was_upright = at
        for following, upright in (
            ((i + 1, j), False),
            ((i - 1, j), False),
            ((i, j + 1), True),
            ((i, j - 1), True),
        ):
            if not (0 <= following[0] < len(self._xs) and 0 <= following[1] < len(self._ys)):
                continue
            if self._inside.get(following) not in {None, source, target}:
                continue
            # Inside its own box a line only goes straight out.
            inside_source = self._inside.get((i, j)) == source
            if inside_source and was_upright not in {None, upright}:
                continue
            if not inside_source and self._inside.get(following) == source:
                continue
            yield following, upright

    def _price(self, at: At, following: Spot, upright: bool, group: Group) -> float:
        spot, was_upright = at
        length = abs(self._xs[spot[0]] - self._xs[following[0]])
        length += abs(self._ys[spot[1]] - self._ys[following[1]])
        along = self._along[frozenset((spot, following))]
        price = length * SHARED if group in along else length
        price += OVERLAP * len(along - {group})
        if was_upright not in {None, upright}:
            price += BEND
        price += sum(
            # A bend on another's bend would look like a junction, so it pays the same.
            CROSSING
            for other, other_upright in self._through[following]
            if other != group and other_upright != upright
        )
        return price

    def _off_centre(self, spot: Spot, name: str) -> float:
        x, y = self._boxes[name]
        return OFF_CENTRE * ((self._xs[spot[0]] != x) + (self._ys[spot[1]] != y))

    def _keep(
        self, at: At, came: dict[At, At], group: Group, source: str, target: str
    ) -> tuple[Point, ...]:
        spots = [at[0]]
        while at in came:
            before = came[at]
            self._along[frozenset((before[0], at[0]))].add(group)
            for spot in (before[0], at[0]):
                self._through[spot].add((group, bool(at[1])))
            at = before
            spots.append(at[0])
        spots.reverse()
        last_inside = max(n for n, spot in enumerate(spots) if self._inside.get(spot) == source)
        points = [(self._xs[i], self._ys[j]) for i, j in spots[last_inside:]]
        points[0] = self._edge(source, points[0], points[1])
        points[-1] = self._edge(target, points[-1], points[-2])
        return tuple(_corners(points))

    def _edge(self, name: str, inner: Point, outer: Point) -> Point:
        """Where the straight line from `inner`, inside the box, to `outer` crosses its edge."""
        (x, y), (width, height) = self._boxes[name], self._grid.box
        if inner[0] == outer[0]:
            return inner[0], y + height / 2 * (1 if outer[1] > inner[1] else -1)
        return x + width / 2 * (1 if outer[0] > inner[0] else -1), inner[1]


def _corners(points: list[Point]) -> list[Point]:
    """The points without those in the middle of a straight piece."""
    kept = [points[0]]
    for before, point, after in zip(points, points[1:], points[2:], strict=False):
        if not (before[0] == point[0] == after[0] or before[1] == point[1] == after[1]):
            kept.append(point)
    return [*kept, points[-1]]
