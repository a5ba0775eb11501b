"""Which mails of a window are known already, by place, by bytes, or by who said what when.

A mail is known by its place, and where the server has numbered the folder anew, by the digest of its bytes;
then its envelope keeps its id, claim and journal and only learns the new place.  A person's mail that
somebody sends again, with another header around the same words, is known by what was said.
"""

import hashlib
from collections.abc import Sequence

from attrs import define, evolve

from mailgateway.domain.envelope import Source
from mailgateway.ids import EnvelopeId, envelope_id_of_mail
from mailgateway.store import envelopes, flagging, sources
from mailgateway.store.database import Tx
from mailgateway.store.sources import Filed


@define(eq=False)
class Recognised:
    """What is known of the mails of one window; it learns what is filed of them."""

    tx: Tx
    numbering: int
    uids: set[int]
    """UIDs of this window that were filed before."""
    copies: dict[str, list[Filed]]
    """Known mails with the bytes of mails of this window, by digest."""
    taken: set[EnvelopeId]
    """The ids that mails of this window would get and another mail has."""

    @classmethod
    def look(cls, tx: Tx, numbering: int, mails: Sequence[tuple[Source, str]]) -> "Recognised":
        """Look up mails, given as place and digest of the bytes."""
        known = sources.known(tx, mails)
        taken = envelopes.taken(tx, [_usual_id(place) for place, _ in mails])
        return cls(tx, numbering, known.uids, known.copies, taken)

    def again(self, place: Source, digest: str) -> Filed | None:
        """The mail with these bytes that was filed before, first one that was numbered otherwise."""
        found = [before for before in self.copies.get(digest, ()) if not self._lost(before.envelope_id)]
        # what still has its place in this numbering is the mail itself, and this one its copy
        here = [before for before in found if not self.renumbered(before, place)]
        return next(iter(here or found), None)

    def said_before(self, said: str) -> EnvelopeId | None:
        """The envelope of a mail that said the same, unless that was lost with its numbers."""
        known = sources.saying(self.tx, said) if said else ()
        return next((each for each in known if not self._lost(each)), None)

    def renumbered(self, before: Filed, place: Source) -> bool:
        """Whether a known mail lay in the same folder under other numbers."""
        same = (before.place.account, before.place.folder) == (place.account, place.folder)
        return same and before.place.uid_validity != self.numbering

    def rebind(self, before: Filed, place: Source) -> None:
        """Tell everything that is known of a mail its new place."""
        sources.rebind(self.tx, before, place)
        envelopes.rebind(self.tx, before.envelope_id, place)
        flagging.rebind(self.tx, before.place, place)
        self._remember(before, evolve(before, place=place))

    def add(self, place: Source, digest: str, envelope_id: EnvelopeId, said: str) -> None:
        """Remember a mail, so that it is dealt with once."""
        filed = Filed(place, digest, envelope_id)
        sources.add(self.tx, filed, said)
        self._remember(None, filed)
        self.uids.add(place.uid)

    def id_of(self, place: Source, digest: str) -> EnvelopeId:
        """The id by the place; another one where reused numbers gave that id to another mail before."""
        found = _usual_id(place)
        if found not in self.taken:
            return found
        while envelopes.taken(self.tx, [found]):
            again = hashlib.sha256(f"{found}\0{digest}".encode()).hexdigest()
            found = EnvelopeId(f"m-{again[:24]}")
        return found

    def _lost(self, envelope_id: EnvelopeId) -> bool:
        return envelopes.dropped_reason(self.tx, envelope_id) == envelopes.RENUMBERED

    def _remember(self, before: Filed | None, now: Filed) -> None:
        entries = self.copies.setdefault(now.raw_sha256, [])
        if before is not None:
            entries.remove(before)
        if now.raw_sha256:
            entries.append(now)


def _usual_id(place: Source) -> EnvelopeId:
    return envelope_id_of_mail(place.account, place.folder, place.uid_validity, place.uid)
