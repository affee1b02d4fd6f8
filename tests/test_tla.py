"""The specification states each rule of one job, and some model checks it. (What TLC finds: see test_model_check.)"""

import re

from partialrelease.tlc import _jar, spec_folder

TLA = spec_folder()
JAR = _jar()


def test_each_rule_of_one_job_is_stated_and_checked() -> None:
    """Every name of a rule that concerns one job is stated in the spec and checked by a model."""
    rules = {"NoReleaseWhileReferenced", "ReleaseGate", "ReferencesAreHeld", "ReleasedOnce", "FinalIsLast"}
    rules |= {"CleanIsLast", "ReferencesShrink", "QueuedEpilogSeesAll", "EarlyRelease", "EventuallyClean"}
    spec = "".join(path.read_text() for path in TLA.glob("*.tla"))
    checked = "".join(path.read_text() for path in TLA.glob("*.cfg"))
    for rule in rules:
        assert re.search(rf"(?m)^{rule} ==", spec), rule
        assert re.search(rf"(?m)^\s+{rule}$", checked), rule
