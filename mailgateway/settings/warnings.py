"""What is legal in the settings but hardly meant, or ought to be known: `status` says it."""

from typing import assert_never

from mailgateway.providers import Results, of_imap
from mailgateway.settings.values import Authentication, People, Settings, SingleMailboxProof

_SINGLE_MAILBOX = {
    SingleMailboxProof.SENT_COPY: (
        "security.authentication is single-mailbox, with the proof sent-copy: a mail is believed when the "
        "same mail lies in the Sent folder, so whoever can log in there is; a mailbox of its own for the "
        "agents is safer."
    ),
    SingleMailboxProof.THREAD: (
        "security.authentication is single-mailbox, with the proof thread: whoever can write to that mailbox "
        "and knows a Message-ID that we sent is believed; sent-copy is safer, and a mailbox of its own for "
        "the agents is safer still."
    ),
}
"""Which proof is active is said in any case, since both believe more than the usual way does."""


def _about_results(settings: Settings) -> list[str]:
    """What speaks for a mail where the receiving server's results do not."""
    ids = settings.security.trusted_authserv_ids
    places = {account.tag: of_imap(account.imap.host) for account in settings.watched}
    found = [
        f"The mail provider of account {tag} ({provider.name}) leaves out its Authentication-Results when "
        "DKIM fails, so they are not looked at: a mail there is believed by its own DKIM signature alone."
        for tag, provider in places.items()
        if provider.results is Results.NONE and ids
    ]
    if not ids and any(provider.results is not Results.ANONYMOUS for provider in places.values()):
        found.append(
            "security.trusted_authserv_ids is empty: a mail is believed by its own DKIM signature alone, "
            "which forwarders break, and some providers. Name the server whose Authentication-Results may "
            "be trusted (the first word of that header)."
        )
    return found


def warnings_of(settings: Settings) -> list[str]:
    """Say what is legal, but hardly meant."""
    found = []
    security = settings.security
    match security.authentication:
        case Authentication.REQUIRED:
            found += _about_results(settings)
        case Authentication.SINGLE_MAILBOX:
            found.append(_SINGLE_MAILBOX[security.single_mailbox_proof])
        case _:
            assert_never(security.authentication)
    if not is_allowed(settings.people, settings.people.notify):
        found.append(
            "people.notify is not among people.allowed: an answer from that address itself is not heard."
        )
    if settings.daemon.port and not is_loopback(settings.daemon.host):
        found.append(
            "daemon.host is not a loopback address: the API, and the keys in it, travel without TLS. "
            "Put a TLS proxy in front, or listen on 127.0.0.1."
        )
    return found


def is_allowed(people: People, address: str) -> bool:
    """Whether an address is one of the people's, in whatever case."""
    return address.lower() in {person.lower() for person in people.allowed}


def is_loopback(host: str) -> bool:
    """Whether a host is this machine for certain; no name but ``localhost`` is."""
    if host in {"localhost", "127.0.0.1", "::1"}:
        return True
    import ipaddress  # noqa: PLC0415 - costs a start that the usual hosts need not pay

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
