"""Writes the handwritten digits that ship inside scikit-learn to data/digits.pt: 1,437 to train on, 360 to test with.

The 1,797 images were written by 43 people (UCI "Optical Recognition of Handwritten Digits"). Nothing is downloaded. The
split is fixed, and has every class in the same proportion on both sides. Running it again changes nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

FILE = Path(__file__).resolve().parent / "data" / "digits.pt"
TEST_SIZE = 360


def main() -> int:
    """Write the file unless it is there; returns the exit code."""
    if FILE.is_file():
        print(f"{FILE} is there already")
        return 0
    try:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
    except ImportError:
        print("prepare.py: the digits ship inside scikit-learn: `pip install scikit-learn` first", file=sys.stderr)
        return 3
    pixels, labels = load_digits(return_X_y=True)
    images = torch.tensor(pixels / 16.0, dtype=torch.float32).reshape(-1, 1, 8, 8)
    classes = torch.tensor(labels, dtype=torch.int64)
    train, test = train_test_split(range(len(classes)), test_size=TEST_SIZE, random_state=0, stratify=labels)
    write({"train": (images[train], classes[train]), "test": (images[test], classes[test])})
    print(f"{FILE}: {len(train)} images to train on, {len(test)} to test with")
    return 0


def write(sets: dict[str, tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Whole or not at all: under another name first."""
    FILE.parent.mkdir(exist_ok=True)
    draft = FILE.with_suffix(f".{os.getpid()}.tmp")
    torch.save(sets, draft)
    draft.replace(FILE)


if __name__ == "__main__":
    sys.exit(main())
