"""Property tests look for wrong answers; how long one takes on a busy machine is no answer.

A command wraps its text at the width of the terminal, and what runs the tests may have any.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("no deadline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no deadline")
os.environ["COLUMNS"] = "100"
