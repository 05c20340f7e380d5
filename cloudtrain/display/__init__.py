"""How a run looks: plain lines, a live view on a terminal, the summary at its end."""
