"""The composition root: the one place that knows every part.

``start`` is what twistd calls, and says how a start may fail; ``gateway`` is what it makes, and says how it
ends.
"""

from mailgateway.service.gateway import Gateway
from mailgateway.service.start import Options, make_service

makeService = make_service  # noqa: N816 (Twisted's name)

__all__ = ["Gateway", "Options", "makeService", "make_service"]
