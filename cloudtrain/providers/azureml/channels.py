"""Files of channels that lie here alone, put into the datastore that the job reads them from."""

from __future__ import annotations

from pathlib import Path

from cloudtrain.providers.azureml.sending import File
from cloudtrain.providers.azureml.store import Store, place_of
from cloudtrain.providers.base import Request
from cloudtrain.providers.localdata import objects
from cloudtrain.providers.port import Progress, Uploaded


def ship_data(store: Store, request: Request, progress: Progress) -> Uploaded:
    """Send what is not there. A folder has the digest of all its files for a name: what lies in it is right."""
    sent = present = 0
    for shipped in request.ships:
        place = place_of(shipped.to)
        if shipped.kind != "data" or place is None:
            continue
        there = {blob.name.removeprefix(place.path): blob.size for blob in store.blobs(place)}
        files = [File(key, file, file.stat().st_size) for key, file in objects(Path(shipped.source))]
        missing = [file for file in files if there.get(file.name) != file.size]
        store.put(place, missing, progress)
        size = sum(file.size for file in missing)
        sent, present = sent + size, present + sum(file.size for file in files) - size
    return Uploaded(sent, present)
