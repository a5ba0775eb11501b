"""The test suite: trial TestCases, run by ``python -m twisted.trial tests``.

Under ``CI`` Hypothesis is derandomized, so that a run depends on the code alone; elsewhere it explores, and
prints what reproduces a failure.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "local", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "local")
