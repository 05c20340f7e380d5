"""From a job to the request of a cloud, and what is done with it short of sending it.

request   job, settings and code -> Request; ``ct.render``
check     what the cloud would refuse, placed in the job file
export    the way out: a folder with which the vendor's own command line submits the same job
compare   the three clouds side by side
"""

from __future__ import annotations

from cloudtrain.rendering.request import render

__all__ = ["render"]
