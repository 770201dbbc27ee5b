"""Property tests look for wrong answers; how long one takes on a busy machine is no answer."""

from hypothesis import HealthCheck, settings

settings.register_profile("no deadline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no deadline")
