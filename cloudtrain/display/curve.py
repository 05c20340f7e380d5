"""The loss curve, drawn in the terminal."""

from __future__ import annotations

from pathlib import Path

from cloudtrain.record.metrics import MetricsReader, number


def loss_points(metrics: Path) -> tuple[list[float], list[float]]:
    """Steps and losses that rank 0 logged (the lowest rank that logged any), in order."""
    by_rank: dict[int, list[tuple[float, float]]] = {}
    for record in MetricsReader(metrics).new():
        step = number(record.get("step"))
        # The mean over all ranks says more than one rank's own share of the batch.
        loss = number(record.get("mean_loss", record.get("loss")))
        if step is not None and loss is not None and isinstance(record.get("rank"), int):
            by_rank.setdefault(record["rank"], []).append((step, loss))
    points = by_rank[min(by_rank)] if by_rank else []
    return [step for step, _ in points], [loss for _, loss in points]


def draw_loss(metrics: Path, *, unicode: bool = True) -> str | None:
    """The curve as lines of text, or None where there is nothing to draw or uniplot is not installed."""
    steps, losses = loss_points(metrics)
    if len(steps) < 2:
        return None
    try:
        from uniplot import plot_to_string
    except ImportError:
        return None
    drawn: str = plot_to_string(
        xs=steps,
        ys=losses,
        lines=True,
        title="loss by step",
        width=64,
        height=12,
        character_set="block" if unicode else "ascii",
    )
    return drawn
