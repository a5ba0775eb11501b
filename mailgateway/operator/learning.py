"""What a mail to ourselves teaches about whom to trust: the lines to write into the settings, where sound.

Policy (RFC 8601, sections 5 and 7.1): a server's results count only where nobody but that server can have
written them.  That is so above all ``Received`` fields, and below them only at a provider that is known to
write there and to take out what comes in under its name.  Nothing is written into the settings by itself.
"""

import re
from typing import assert_never

from mailgateway.operator.findings import State
from mailgateway.providers import Provider, Results
from mailgateway.settings import Authentication, Security

_NAME = re.compile(r"[A-Za-z0-9._-]{1,255}")
"""Names that may stand in a line to be copied; it comes from a mail."""

_DKIM_ALONE = "a mail is believed by its own DKIM signature alone"


def told_of_results(
    authserv_id: str | None, *, above: bool, security: Security, provider: Provider
) -> tuple[State, str, str]:
    """What the outermost ``Authentication-Results`` of such a mail means: the state, the fact, what to do.

    ``authserv_id`` is who speaks in it, empty for nobody, ``None`` where there is no such field; ``above``
    says whether it stands above all ``Received`` fields.
    """
    if security.authentication is Authentication.SINGLE_MAILBOX:
        return State.NOTE, "in one mailbox for both, the results of the server are not needed", ""
    match provider.results:
        case Results.NONE:
            what = f"{provider.name} leaves out its results where DKIM fails, so {_DKIM_ALONE}"
            return State.NOTE, what, ""
        case Results.ANONYMOUS:
            what = f"{provider.name} writes its results without a name, and they are used as they are"
            return State.OK, what, ""
        case Results.ABOVE | Results.BELOW:
            pass
        case _:
            assert_never(provider.results)
    if not authserv_id or _NAME.fullmatch(authserv_id) is None:
        what = f"the server writes no results under a name on a mail to itself, so {_DKIM_ALONE}"
        return (
            State.NOTE,
            what,
            "If mail of others has an Authentication-Results field, its first word is the name.",
        )
    known = {each.lower() for each in security.trusted_authserv_ids}
    lines = [f'trusted_authserv_ids = ["{authserv_id}"]']
    if not above:
        if provider.results is not Results.BELOW:
            what = (
                f"{authserv_id} writes its results below a Received field, where a sender might have "
                f"written them: so {_DKIM_ALONE}"
            )
            return State.NOTE, what, ""
        lines.append("results_below_received = true")
    trusted = authserv_id.lower() in known
    if trusted and security.results_below_received is not above:
        return State.OK, f"the results of {authserv_id} are found and trusted", ""
    if trusted:
        place = "above all" if above else "below its own"
        what = (
            f"{authserv_id} is trusted, but its results stand {place} Received and are looked for elsewhere"
        )
        line = f"results_below_received = {'false' if above else 'true'}"
        return State.WARNING, what, f"Write into [security]:\n{line}"
    what = f"{authserv_id} says whether a sender is whom it names, and is not trusted yet"
    return State.WARNING, what, "\n".join(["Write into [security], if it is your provider's name:", *lines])
