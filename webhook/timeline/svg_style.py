"""How a picture looks, in light and dark. Holders have colors, and what no one holds has a pattern as well."""

from typing import Final

STYLE: Final = """
.lease-timeline {
  --ink: #1f2328; --faint: #59636e; --paper: #ffffff; --line: #d1d9e0; --alarm: #cf222e;
  --c0: #9ecbff; --c1: #ffd8a8; --c2: #b7e4c7; --c3: #e2c6ff; --c4: #ffc9d6; --c5: #d8d3b0;
  font: 12px system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
}
@media (prefers-color-scheme: dark) {
  .lease-timeline {
    --ink: #e6edf3; --faint: #9198a1; --paper: #0d1117; --line: #3d444d; --alarm: #ff7b72;
    --c0: #1f4b80; --c1: #7a4a12; --c2: #245c3a; --c3: #573a80; --c4: #80304a; --c5: #57522b;
  }
}
.lease-timeline text { fill: var(--ink); }
.lease-timeline text.faint { fill: var(--faint); }
.lease-timeline text.name { font-size: 15px; font-weight: 600; }
.lease-timeline text.number { fill: var(--paper); font-size: 11px; font-weight: 600; text-anchor: middle; }
.lease-timeline text.axis { text-anchor: middle; }
.lease-timeline text.alarm { fill: var(--alarm); font-weight: 600; }
.lease-timeline .paper { fill: var(--paper); }
.lease-timeline .c0 { fill: var(--c0); }
.lease-timeline .c1 { fill: var(--c1); }
.lease-timeline .c2 { fill: var(--c2); }
.lease-timeline .c3 { fill: var(--c3); }
.lease-timeline .c4 { fill: var(--c4); }
.lease-timeline .c5 { fill: var(--c5); }
.lease-timeline .none { fill: var(--paper); stroke: var(--alarm); stroke-dasharray: 4 3; }
.lease-timeline .several, .lease-timeline .offered { fill: var(--line); }
.lease-timeline .hatch { stroke: var(--alarm); stroke-width: 2; stroke-opacity: 0.55; }
.lease-timeline .gap { fill: var(--alarm); }
.lease-timeline .rule { stroke: var(--line); }
.lease-timeline .tick { stroke: var(--faint); }
.lease-timeline .stem { stroke: var(--ink); }
.lease-timeline .dot { fill: var(--ink); }
"""

HATCH: Final = """\
<defs><pattern id="lt-late" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<line x1="1" y1="0" x2="1" y2="8" class="hatch"/></pattern></defs>"""
