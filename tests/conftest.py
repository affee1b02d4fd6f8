"""Settings for all tests."""

from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.load_profile("default")
