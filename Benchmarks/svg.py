# SPDX-License-Identifier: Apache-2.0
"""Draws charts as SVG: lines on two logarithmic axes, and bars. Nothing is needed but this file."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 48, 52
COLOURS = ["#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#7f7f7f"]
FONT = 'font-family="sans-serif"'


def duration(nanoseconds):
    """A short text for a time, such as 250 ns or 1.5 µs."""
    for limit, divisor, unit in ((1e3, 1, "ns"), (1e6, 1e3, "µs"), (1e9, 1e6, "ms")):
        if nanoseconds < limit:
            return "%.3g %s" % (nanoseconds / divisor, unit)
    return "%.3g s" % (nanoseconds / 1e9)


def text(x, y, content, anchor="start", size=12, colour="#222"):
    return '<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d" fill="%s" %s>%s</text>' % (x, y, anchor, size, colour, FONT,
                                                                                              escape(content))


def line(x1, y1, x2, y2, colour, width=1.0):
    return '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g"/>' % (x1, y1, x2, y2, colour, width)


def write(path, parts, height=HEIGHT):
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">' % (WIDTH, height, WIDTH, height)
    background = '<rect width="%d" height="%d" fill="#fff"/>' % (WIDTH, height)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([head, background] + parts + ["</svg>"]) + "\n")


class Scale:
    """Maps values to places along one logarithmic axis, whose ends are whole powers of ten."""

    def __init__(self, values, start, end):
        self.low = math.floor(math.log10(min(values)))
        self.high = max(math.ceil(math.log10(max(values))), self.low + 1)
        self.start, self.end = start, end

    def at(self, value):
        return self.start + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.start)

    def decades(self):
        return [10.0 ** power for power in range(self.low, self.high + 1)]


def spread_labels(places, gap=14):
    """Moves the labels at these heights apart so that none covers another; each item is [height, ...]."""
    places.sort(key=lambda place: place[0])
    for below, above in zip(places[1:], places):
        below[0] = max(below[0], above[0] + gap)
    return places


def lines(path, title, x_title, series):
    """`series` maps names to lists of (N, nanoseconds); the first is drawn thickest."""
    series = {name: sorted(points) for name, points in series.items() if points}
    points = [point for found in series.values() for point in found]
    if not points:
        return
    across = Scale([n for n, _ in points], LEFT, WIDTH - RIGHT)
    up = Scale([value for _, value in points], HEIGHT - BOTTOM, TOP)
    parts = [text(LEFT, 26, title, size=15)]
    for value in up.decades():
        parts += [line(LEFT, up.at(value), WIDTH - RIGHT, up.at(value), "#ddd"), text(LEFT - 8, up.at(value) + 4, duration(value), "end")]
    for value in across.decades():
        parts += [line(across.at(value), TOP, across.at(value), HEIGHT - BOTTOM, "#ddd"),
                  text(across.at(value), HEIGHT - BOTTOM + 18, "{:,.0f}".format(value), "middle")]
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_title, "middle"))
    labels = []
    for index, (name, found) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        places = " ".join("%.1f,%.1f" % (across.at(n), up.at(value)) for n, value in found)
        parts.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="%g"/>' % (places, colour, 1.6 if index else 3.2))
        parts += ['<circle cx="%.1f" cy="%.1f" r="%g" fill="%s"/>' % (across.at(n), up.at(value), 2.4 if index else 3.6, colour)
                  for n, value in found]
        labels.append([up.at(found[-1][1]), name, colour])
    for y, name, colour in spread_labels(labels):
        parts.append(text(WIDTH - RIGHT + 10, y + 4, name, colour=colour))
    write(path, parts)


def bars(path, title, groups):
    """`groups` maps titles to lists of (name, value, text of the value); each group has a linear scale of its own."""
    height, parts = 40, []
    for group, entries in groups.items():
        most = max(value for _, value, _ in entries)
        parts.append(text(20, height + 18, group, size=13))
        height += 28
        for index, (name, value, shown) in enumerate(entries):
            length = (WIDTH - 330) * value / most if most > 0 else 0
            parts += [text(190, height + 12, name, "end"),
                      '<rect x="200" y="%.1f" width="%.1f" height="15" fill="%s"/>' % (height, length, COLOURS[index % len(COLOURS)]),
                      text(206 + length, height + 12, shown)]
            height += 20
        height += 12
    write(path, [text(20, 26, title, size=15)] + parts, height + 10)
