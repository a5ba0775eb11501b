"""Draws the watching machine: ``python -m tests.daemons.draw_machine > docs/watcher.dot``.

Automat's own picture comes in another order at every run and shows functions that explain nothing; this one
is sorted and shows states and events only.
"""

import re
import sys

from mailgateway.daemons.machine import watching_machine


def drawing() -> str:
    """The machine as a DOT file (Graphviz), the same text for the same machine."""
    source = watching_machine().build().asDigraph().source
    events = dict(re.findall(r'^\t(t\d+) \[label=.*?<font face="menlo-italic">(\w+)<', source, re.MULTILINE))
    before = [
        (node, state)
        for state, node in re.findall(r'^\t"?([\w ]+?)"? -> (t\d+):tableport', source, re.MULTILINE)
    ]
    after = dict(re.findall(r'^\t(t\d+):tableport:e -> "?([\w ]+?)"?$', source, re.MULTILINE))
    edges = sorted((state, after[node], events[node]) for node, state in before)
    lines = [f'\t"{start}" -> "{end}" [label="{event}"]' for start, end, event in edges]
    return "\n".join(["digraph watcher {", "\trankdir=LR", '\tstopped [style="bold"]', *lines, "}", ""])


if __name__ == "__main__":
    sys.stdout.write(drawing())
