"""A soak of half a minute with its oracle, and the soak's own judgement, which must be able to fail."""

import importlib.util
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

from twisted.trial.unittest import SynchronousTestCase

from tests.fakes.dovecot import require_dovecot

TOP = Path(__file__).parent.parent.parent
SECONDS = 22


def curve_module() -> ModuleType:
    """The part of the soak that judges curves; ``bench`` is a folder of scripts, not a package."""
    name = "_soak_curve"
    spec = importlib.util.spec_from_file_location(name, TOP / "bench" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # attrs looks there for annotations
    spec.loader.exec_module(module)
    return module


CURVE = curve_module()


class CurveTests(SynchronousTestCase):
    """Flat, or not."""

    def setUp(self) -> None:
        self.chance = random.Random(1)  # noqa: S311 (noise)

    def flat(self, leak: float, *, allowed: float = 4.0) -> bool:
        """Judge twenty minutes that warm up, then stay as they are but for noise, bursts and a leak."""
        curves = CURVE.Curves()
        for at in range(0, 1_200, 5):
            value = min(90.0, 60 + at / 4) + self.chance.gauss(0, 1.5) + leak * max(0, at - 200) / 1_000
            curves.add(float(at), {"size": value + 60 * (self.chance.random() < 0.05)})
        (trend,) = CURVE.trends(curves, {"size": CURVE.Limit(allowed)})
        return bool(trend.flat)

    def test_a_leak_is_found(self) -> None:
        """However noisy the curve is; what happened in the first half does not count."""
        self.assertTrue(self.flat(leak=0))
        self.assertTrue(self.flat(leak=-50))
        self.assertFalse(self.flat(leak=12))
        self.assertFalse(self.flat(leak=100))

    def test_a_saw_is_flat_and_a_staircase_is_not(self) -> None:
        """Rows grow until the next clearing; what clearing does not take is a leak."""
        times = [float(at) for at in range(1_000)]
        saw = [float(at % 60) for at in range(1_000)]
        staircase = [float(at % 60 + 10 * (at // 60)) for at in range(1_000)]
        self.assertLess(abs(CURVE.growth(times, saw)), 10)
        self.assertGreater(CURVE.growth(times, staircase), 50)

    def test_days_fit_in_the_same_room(self) -> None:
        """Samples are thinned out, figures that come late count from zero, and the picture is XML."""
        curves = CURVE.Curves()
        for at in range(5_000):
            curves.add(float(at), {"one": 1.0, **({"late": 5.0} if at > 2_000 else {})})
        self.assertLess(len(curves.times), CURVE.MOST_SAMPLES)
        self.assertEqual({len(values) for values in curves.values.values()}, {len(curves.times)})
        self.assertGreater(curves.times[-1], 4_900)
        picture = CURVE.svg(curves, (("A & B", "rows", ("one", "late")),), "days <of> it")
        self.assertEqual(len(ET.fromstring(picture).findall(".//{*}polyline")), 2)  # noqa: S314 (ours)


class SoakTests(SynchronousTestCase):
    """The whole of it, for a moment."""

    def test_half_a_minute(self) -> None:
        """Mixed mail, bad sessions, cuts, restarts and a renumbering: the oracle is content."""
        require_dovecot()
        folder = Path(tempfile.mkdtemp(prefix="mailgateway-soak-"))
        self.addCleanup(folder.rmdir)
        figures = folder / "figures.json"
        self.addCleanup(figures.unlink, missing_ok=True)
        command = [sys.executable, str(TOP / "bench" / "soak.py"), "--minutes", str(SECONDS / 60)]
        command += ["--rate", "8", "--seed", "7", "--json", str(figures)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        found: dict[str, Any] = (
            json.loads(figures.read_text()) if figures.exists() else {"violations": ["it did not end"]}
        )
        self.assertEqual(found["violations"], [], done.stdout[-3_000:] + done.stderr[-3_000:])
        for what in ("acked", "mailbox renumbered", "imap connection cut", "posted stranger"):
            self.assertGreater(found["figures"].get(what, 0), 0, what)
