"""The one frame of all HTML pages: what is on a page as data, and how it is written.

A page is a :class:`Page` of :class:`Section`, whose parts are a :class:`Table` of typed cells, a
:class:`Chart` (a Vega-Lite view of columns), a :class:`Graph` of boxes and lines, or a
:class:`Picture`. Parts that are about the same thing carry the same key: a reader who chooses it in
one sees it in all. ``render`` makes the HTML file.
"""

from darwinn_testbench.pages.content import (
    Beside,
    Box,
    Chart,
    Columns,
    Graph,
    Page,
    Part,
    Picture,
    Section,
    Table,
    Times,
    sentence,
    table_of,
)
from darwinn_testbench.pages.render import render

__all__ = [
    "Beside",
    "Box",
    "Chart",
    "Columns",
    "Graph",
    "Page",
    "Part",
    "Picture",
    "Section",
    "Table",
    "Times",
    "render",
    "sentence",
    "table_of",
]
