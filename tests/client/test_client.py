"""The client: what it sends, how failures are told apart, and to whom it never sends its key."""

from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.client import ApiRefused, Base, Client, ServiceUnreachable, WrongService, base_of
from mailgateway.contract import proof_of
from mailgateway.errors import ConfigError
from tests.client.stand_in import KEY, StandIn


class ClientTests(SynchronousTestCase):
    """Calls of a service that is there."""

    def setUp(self) -> None:
        self.service = StandIn()
        self.service.start()
        self.addCleanup(self.service.stop)
        self.key_path = Path(mkdtemp(dir=".")) / "secret.key"
        self.key_path.write_text(f"{KEY}\n")
        self.key_path.chmod(0o600)
        self.client = Client(self.service.base, self.key_path, 5)
        self.addCleanup(self.client.close)

    def test_the_key_goes_only_where_the_proof_came_from(self) -> None:
        """The challenge is asked without the key; the calls behind it carry the key and the API number."""
        self.service.answers["GET /mode"] = (200, {"mode": "off"})
        self.assertEqual(self.client.mode(), "off")
        self.assertEqual(self.client.mode(), "off")
        self.assertEqual(self.service.with_key, ["GET /mode", "GET /mode"])
        first, *calls = self.service.requests
        self.assertTrue(first.path.startswith("/health?challenge="))
        self.assertEqual(calls[0].headers["authorization"], f"Bearer {KEY}")
        self.assertEqual(calls[0].headers["mailgateway-api"], "1")

    def test_an_impostor_never_sees_the_key(self) -> None:
        """Whoever cannot prove gets no key: without a proof, with another key's, with no JSON at all."""
        for name in ("none", "other", "noise"):
            service = StandIn(proves=name != "none", key="00" * 32)
            if name == "noise":
                service.answers["GET /health"] = (200, b"<html>")
            service.start()
            self.addCleanup(service.stop)
            client = Client(service.base, self.key_path, 5)
            self.assertRaises(WrongService, client.mode)
            self.assertEqual(service.with_key, [], name)

    def test_a_connection_closed_after_the_proof_is_not_opened_anew(self) -> None:
        """The next connection could lead to somebody else: there is no key on one that was not proved."""
        self.service.hangs_up = True
        self.assertRaises(WrongService, self.client.mode)
        self.assertEqual(self.service.with_key, [])

    def test_a_refusal_keeps_its_code_and_fields(self) -> None:
        """The stable code, the status and the further fields reach the caller."""
        answer = {"error": "send_budget", "message": "Wait.", "retryAfter": 7}
        self.service.answers["POST /send"] = (429, answer)
        refused = self.assertRaises(ApiRefused, self.client.send, "notification", "s", "S", "T")
        self.assertEqual(
            (refused.code, refused.message, refused.status, refused.details),
            ("send_budget", "Wait.", 429, {"retryAfter": 7}),
        )

    def test_send_leaves_out_what_was_not_given(self) -> None:
        """Unknown and empty fields would be refused, so only what was said is sent."""
        self.service.answers["POST /send"] = (200, {"messageId": "<m>", "state": "sent"})
        self.client.send("decision", "s", "S", "T", options=("a", "b"))
        self.assertEqual(
            self.service.requests[-1].body,
            {"kind": "decision", "sessionId": "s", "subject": "S", "text": "T", "options": ["a", "b"]},
        )

    def test_names_are_quoted_in_paths(self) -> None:
        """An id of somebody else's making cannot leave its place in the path."""
        self.service.answers["GET /deliveries/..%2Fx/attachments/a%3Fb"] = (200, b"\0bytes")
        self.assertEqual(self.client.attachment("../x", "a?b", "i"), b"\0bytes")
        self.assertEqual(self.service.requests[-1].headers["x-instance-id"], "i")

    def test_a_long_poll_says_how_long(self) -> None:
        """``wait`` stands in the query, and is never longer than the service allows."""
        self.service.answers["GET /pending"] = (200, {"deliveries": []})
        self.assertEqual(self.client.pending("s 1", wait=600), [])
        self.assertEqual(self.service.requests[-1].path, "/pending?session=s+1&wait=60")

    def test_a_read_is_asked_again_when_the_old_connection_died(self) -> None:
        """After a restart of the service a read just works; the new connection is proved as well."""
        self.service.answers["GET /mode"] = (200, {"mode": "on"})
        self.client.mode()
        connection = self.client._connection
        assert connection is not None
        assert connection.sock is not None
        connection.sock.shutdown(2)
        self.assertEqual(self.client.mode(), "on")
        proofs = [r for r in self.service.requests if r.path.startswith("/health?")]
        self.assertEqual(len(proofs), 2)

    def test_a_write_is_never_asked_twice(self) -> None:
        """It may have happened: the caller is told, and decides."""
        self.service.answers["GET /mode"] = (200, {"mode": "on"})
        self.service.answers["POST /send"] = (200, {})
        self.client.mode()
        connection = self.client._connection
        assert connection is not None
        assert connection.sock is not None
        connection.sock.shutdown(2)
        self.assertRaises(ServiceUnreachable, self.client.send, "notification", "s", "S", "T")
        self.assertNotIn("POST /send", [f"{r.method} {r.path}" for r in self.service.requests])

    def test_nobody_there(self) -> None:
        """No service is ``ServiceUnreachable`` even without a key file, and names the place."""
        self.service.stop()
        self.key_path.unlink()
        error = self.assertRaises(ServiceUnreachable, self.client.mode)
        self.assertIn(str(self.service.base.port), str(error))

    def test_a_service_without_our_key_file(self) -> None:
        """The file to look at is named; nothing was sent."""
        self.key_path.unlink()
        error = self.assertRaises(ConfigError, self.client.mode)
        self.assertIn("secret.key", str(error))
        self.assertEqual(self.service.requests, [])

    def test_health_needs_no_key(self) -> None:
        """``health`` can be asked by anybody."""
        self.assertEqual(self.client.health()["pending"], 2)
        self.assertEqual(self.service.with_key, [])

    def test_a_unix_socket_speaks_the_same(self) -> None:
        """The same calls over the socket."""
        folder = mkdtemp(prefix="mg")  # short, as the names of sockets must be
        self.addCleanup(rmtree, folder)
        path = Path(folder) / "s"
        service = StandIn(answers={"POST /mode": (200, {"mode": "off"})})
        service.start(path)
        self.addCleanup(service.stop)
        with Client(service.base, self.key_path, 5) as client:
            self.assertEqual(client.set_mode("off"), "off")
        self.assertEqual(service.requests[-1].body, {"mode": "off"})

    def test_a_key_that_proves_nothing_is_not_sent_in_the_clear(self) -> None:
        """One of ``[keys]`` over plain HTTP: the client cannot know who listens, and does not try."""
        client = Client(self.service.base, self.key_path, 5, prove=False)
        self.assertRaises(WrongService, client.mode)
        self.assertEqual(self.service.requests, [])

    def test_a_key_that_proves_nothing_goes_over_the_socket(self) -> None:
        """The socket's own mode says who may listen there; the key may be open to its group."""
        folder = mkdtemp(prefix="mg")
        self.addCleanup(rmtree, folder)
        service = StandIn(answers={"GET /mode": (200, {"mode": "on"})})
        service.start(Path(folder) / "s")
        self.addCleanup(service.stop)
        self.key_path.chmod(0o640)
        with Client(service.base, self.key_path, 5, prove=False) as client:
            self.assertEqual(client.mode(), "on")
        self.assertEqual([request.path for request in service.requests], ["/mode"])

    def test_events_are_read_until_the_end(self) -> None:
        """Comments are passed over, data is JSON, an event without a name is a message."""
        stream = b': ping\n\nid: 7\nevent: delivery\ndata: {"id": "m-1"}\n\ndata: a\ndata: b\n\n'
        self.service.answers["GET /events"] = (200, stream)
        self.assertEqual(
            list(self.client.events(last_event_id="6")),
            [
                {"id": "7", "event": "delivery", "data": {"id": "m-1"}},
                {"id": "7", "event": "message", "data": "a\nb"},
            ],
        )
        self.assertEqual(self.service.requests[-1].headers["last-event-id"], "6")


class BaseTests(SynchronousTestCase):
    """Where the service is, as people write it."""

    def test_forms(self) -> None:
        """A socket, a port, a host behind TLS; anything else is refused."""
        self.assertEqual(base_of("unix:/run/mg.sock"), Base(socket=Path("/run/mg.sock")))
        self.assertEqual(base_of("http://127.0.0.1"), Base(host="127.0.0.1", port=4177))
        self.assertEqual(base_of("https://mg.example.org"), Base(host="mg.example.org", port=443, tls=True))
        for text in ("", "ftp://x", "127.0.0.1:1", "http://"):
            self.assertRaises(ValueError, base_of, text)

    def test_the_proof_is_the_documented_one(self) -> None:
        """HMAC-SHA256 over the prefix, a zero byte and the challenge, keyed with the key's text."""
        self.assertEqual(
            proof_of("key", "challenge"), "e432d16f793dc5117ae477b5816d9122b95f4d85fbfe37549e1f6b820ca6595d"
        )
