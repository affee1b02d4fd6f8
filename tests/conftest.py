"""Settings for all tests."""

from hypothesis import settings

# The same examples each time: a red run is the change's doing.
settings.register_profile("default", deadline=None, derandomize=True)
settings.load_profile("default")
