"""What a request needs in its datastores: spec.json, and the files of channels that lie here alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cloudtrain.providers.azureml.sending import File
from cloudtrain.providers.azureml.store import Place, Store, place_of
from cloudtrain.providers.base import Request, Shipped
from cloudtrain.providers.localdata import objects
from cloudtrain.providers.port import Progress, Uploaded
from cloudtrain.providers.shipping import SPEC, spec_content


def ship_data(store: Store, request: Request, progress: Progress) -> Uploaded:
    """Send what is not there. A folder has the digest of all its files for a name: what lies in it is right."""
    sent = present = 0
    for place, shipped in _ships(request, "data"):
        there = {blob.name.removeprefix(place.path): blob.size for blob in store.blobs(place)}
        files = [File(key, file, file.stat().st_size) for key, file in objects(Path(shipped.source))]
        missing = [file for file in files if there.get(file.name) != file.size]
        store.put(place, missing, behind(sent, progress))
        size = sum(file.size for file in missing)
        sent, present = sent + size, present + sum(file.size for file in files) - size
    return Uploaded(sent, present)


def ship_spec(store: Store, request: Request, progress: Progress) -> Uploaded:
    """Send spec.json unless it is there as it is to be. The folder has the run's name: every attempt, from whatever
    machine, has the same."""
    content, sent = spec_content(request.spec), 0
    size = len(content)
    for place, _ in _ships(request, "spec"):
        if store.read(place, SPEC, size + 1) != content:
            store.write(place, SPEC, content)
            sent += size
            progress(sent, sent)
    return Uploaded(sent, size - sent)


def behind(before: int, progress: Progress) -> Progress:
    """Progress of what follows upon so many bytes."""
    return lambda done, total: progress(before + done, before + total)


def _ships(request: Request, kind: str) -> Iterator[tuple[Place, Shipped]]:
    for shipped in request.ships:
        place = place_of(shipped.to) if shipped.kind == kind else None
        if place is not None:
            yield place, shipped
