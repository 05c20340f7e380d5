"""``python -m cloudtrain``."""

from __future__ import annotations

from cloudtrain.cli import main

main()
