"""The style sheet of a run's page, in light and dark."""

from typing import Final

__all__ = ["STYLE"]

# The colours of lines have a contrast of at least 4.5 to the background.
STYLE: Final = """\
:root {
  color-scheme: light dark;
  --text: #1f2328; --quiet: #57606a; --back: #ffffff; --card: #f6f8fa;
  --grid: #d0d7de; --a: #0969da; --b: #b35900; --problem: #b42318;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #e6edf3; --quiet: #9198a1; --back: #0d1117; --card: #161b22;
    --grid: #30363d; --a: #58a6ff; --b: #e3a03f; --problem: #ff7b72;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 1200px; padding: 1rem;
  color: var(--text); background: var(--back);
  font: 15px/1.4 system-ui, sans-serif;
}
h1 { font-size: 1.3rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 1.5rem 0 0.5rem; }
.about { color: var(--quiet); font-size: 0.85rem; margin: 0.3rem 0 1rem; }
.problem { color: var(--problem); margin: 0.5rem 0; overflow-wrap: anywhere; }
.figures {
  display: grid; gap: 0.5rem; margin: 0 0 1rem;
  grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr));
}
.figures div, figure { background: var(--card); border-radius: 6px; padding: 0.6rem; }
dt { color: var(--quiet); font-size: 0.8rem; }
dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
small { color: var(--quiet); font-size: 0.8rem; white-space: nowrap; }
.plots {
  display: grid; gap: 0.75rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr));
}
figure { margin: 0; min-width: 0; }
figcaption { font-size: 0.9rem; min-height: 2.6em; }
.legend { display: block; font-size: 0.8rem; color: var(--quiet); }
.legend span { margin-right: 1rem; white-space: nowrap; }
.legend span::before {
  content: ""; display: inline-block; width: 1.4rem; margin-right: 0.35rem;
  border-top: 2px solid var(--a); vertical-align: middle;
}
.legend .b::before { border-top: 2px dashed var(--b); }
svg { display: block; width: 100%; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: var(--quiet); }
.grid { stroke: var(--grid); fill: none; }
.restart { stroke: var(--quiet); fill: none; stroke-dasharray: 1 3; }
.line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.line.a { stroke: var(--a); }
.line.b { stroke: var(--b); stroke-dasharray: 5 2; }
.bars.b { stroke: var(--b); }
circle.a { fill: var(--a); }
circle.b { fill: var(--b); }
.point { fill: transparent; }
.point:hover { fill: var(--quiet); fill-opacity: 0.15; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; }
th, td {
  border-bottom: 1px solid var(--grid); padding: 0.25rem 0.8rem 0.25rem 0;
  text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums;
}
th { color: var(--quiet); font-weight: normal; }
th:first-child, td:first-child { text-align: left; }
.reasons { width: 100%; }
.reasons td:first-child { white-space: normal; overflow-wrap: anywhere; }
.reasons .bar { width: 35%; padding-right: 0; }
.bar div { height: 0.8rem; min-width: 1px; background: var(--b); }
summary { cursor: pointer; margin: 1.5rem 0 0.5rem; }
"""
