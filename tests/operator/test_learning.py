"""What a mail to ourselves teaches: lines for the settings where they are sound, and none elsewhere."""

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.operator.findings import State
from mailgateway.operator.learning import told_of_results
from mailgateway.providers import Provider, Results
from mailgateway.settings import Authentication, Security

UNKNOWN = Provider()
BELOW = Provider(name="Below", results="below")
ID = "mx.example.org"


class LearningTests(SynchronousTestCase):
    """Each case."""

    def told(
        self,
        authserv_id: str | None = ID,
        *,
        above: bool = True,
        provider: Provider = UNKNOWN,
        security: Security | None = None,
    ) -> tuple[State, str, str]:
        """What is said."""
        known = Security() if security is None else security
        return told_of_results(authserv_id, above=above, security=known, provider=provider)

    def test_above_all_others(self) -> None:
        """The line to write, as it is written."""
        state, what, advice = self.told()
        self.assertEqual(state, State.WARNING)
        self.assertIn(ID, what)
        self.assertEqual(advice.splitlines()[1:], [f'trusted_authserv_ids = ["{ID}"]'])

    def test_below_at_a_provider_that_is_known_for_it(self) -> None:
        """Both lines belong together."""
        advice = self.told(above=False, provider=BELOW)[2]
        self.assertEqual(
            advice.splitlines()[1:], [f'trusted_authserv_ids = ["{ID}"]', "results_below_received = true"]
        )

    def test_below_at_anybody_elses(self) -> None:
        """A sender may have written that: no line is given."""
        for security in (Security(), Security(trusted_authserv_ids=(ID,), results_below_received=True)):
            state, _, advice = self.told(above=False, security=security)
            self.assertEqual((state, advice), (State.NOTE, ""))

    def test_what_is_trusted_already(self) -> None:
        """In whatever case; the place is held against the setting."""
        trusted = Security(trusted_authserv_ids=(ID.upper(),))
        below = evolve(trusted, results_below_received=True)
        self.assertEqual(self.told(security=trusted)[0], State.OK)
        self.assertEqual(self.told(above=False, provider=BELOW, security=below)[0], State.OK)
        self.assertIn("results_below_received = false", self.told(security=below)[2])
        self.assertIn(
            "results_below_received = true", self.told(above=False, provider=BELOW, security=trusted)[2]
        )

    def test_nothing_to_learn(self) -> None:
        """No field, no name, a provider whose results are no use, and one mailbox for both."""
        single = Security(authentication=Authentication.SINGLE_MAILBOX)
        for told in (
            self.told(None),
            self.told(""),
            self.told('x"]\ndangerous = ["y'),
            self.told(provider=Provider(name="P", results=Results.NONE)),
            self.told(provider=Provider(name="P", results=Results.ANONYMOUS)),
            self.told(security=single),
        ):
            self.assertNotIn("trusted_authserv_ids", told[2])
            self.assertNotEqual(told[0], State.WARNING)
