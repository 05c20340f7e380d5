"""Show what differs from the kept requests, or accept it."""

from __future__ import annotations

import sys

from tests.providers.golden import accept, cases, difference

for case in cases():
    if text := difference(*case):
        print(text)
        if "--accept" in sys.argv[1:]:
            accept(*case)
