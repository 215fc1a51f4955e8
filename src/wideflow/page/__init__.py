"""One self-contained page, or a fragment for a notebook, made of plain data: text, tables, pictures, clouds.

`parts` makes fragments of HTML, `player` an animated cloud of points, `document` joins them. Nothing here
knows what a run is; no page loads anything from the network.
"""
