"""Accessibility checks of pages: contrast of text, and names of controls."""

from __future__ import annotations

from typing import Any


def contrast(page: Any, selector: str) -> float:
    """Return the least contrast of text with its background, as WCAG defines it."""
    return float(page.evaluate(CONTRAST, selector))


def unnamed(page: Any, selector: str) -> int:
    """Return the number of elements without a name for screen readers."""
    return int(page.locator(selector).evaluate_all(UNNAMED))


UNNAMED = """nodes => nodes.filter(
  (n) => !(n.labels?.length || n.textContent.trim() || n.ariaLabel)
).length"""
CONTRAST = """(selector) => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const bright = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    const found = parse(getComputedStyle(node).backgroundColor);
    return found.length === 3 || found[3] > 0 ? found : ground(node.parentElement);
  };
  const texts = [...document.querySelectorAll(selector)]
    .filter((n) => n.checkVisibility())
    .filter((n) => [...n.childNodes].some((child) => child.nodeType === 3 && child.data.trim()));
  return Math.min(...texts.map((node) => {
    const [a, b] = [bright(parse(getComputedStyle(node).color)), bright(ground(node))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }));
}"""
