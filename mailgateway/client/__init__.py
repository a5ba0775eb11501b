"""The API from the caller's side: a small blocking client of the standard library.

The command line, the hooks and the MCP server speak through it.  It must start fast, so it knows neither
Twisted nor the service's own layers; and it sends its key to nobody who has not proved to be the service.
"""

from mailgateway.client.api import Client
from mailgateway.client.connection import Base, base_of
from mailgateway.client.failures import ApiRefused, ServiceUnreachable, WrongService

__all__ = ["ApiRefused", "Base", "Client", "ServiceUnreachable", "WrongService", "base_of"]
