"""Settings for all tests: how long they look."""

from hypothesis import settings

settings.register_profile("dev", deadline=None, derandomize=True, max_examples=15)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("deep", deadline=None, max_examples=10_000)
settings.load_profile("ci")
