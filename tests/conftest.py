"""Property tests look for wrong answers; how long one takes on a busy machine is no answer.

With `CI` set, as `.ci/run` does, they draw the same examples each time: a change is refused for what it broke. Without
it each run draws new ones. A command wraps its text at the width of the terminal, and what runs the tests may have any.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "project", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("project")
os.environ["COLUMNS"] = "100"
