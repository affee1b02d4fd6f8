"""Early, partial release of a job's ranks: the state machine of one job as pure functions, and readers for its logs.

The machine (``Job``, ``apply``, ``decide``) and its events need attrs and pyroaring alone. The readers of logs and of
R are imported when first used, and need the extra ``[cli]``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .check import (
    MEANING,
    UNKNOWN,
    Finding,
    Hold,
    NotALogStartError,
    Report,
    begin_report,
    check_entries,
    known_ranks,
)
from .events import (
    Alloc,
    Clean,
    Depend,
    DependencyAdd,
    DependencyRemove,
    Entry,
    EpilogFinish,
    EpilogStart,
    Event,
    Finish,
    FluxRestart,
    Free,
    Invalidate,
    JobException,
    JobspecUpdate,
    Malformed,
    Memo,
    PartialFree,
    Priority,
    PrologFinish,
    PrologStart,
    Release,
    ResourceUpdate,
    SetFlags,
    Start,
    Submit,
    Unknown,
    Urgency,
    Validate,
    looks_cut_short,
    make_event,
    to_context,
)
from .fragment import (
    Fragment,
)
from .hostlist import (
    Hostlist,
    HostlistError,
)
from .housekeeping import (
    Housekeeping,
    Timer,
)
from .idset import (
    ALL_RANKS,
    MAX_ID,
    NO_RANKS,
    IdSet,
    IdSetError,
)
from .instance import (
    Completed,
    Hello,
    Input,
    Instance,
    JobEvent,
    Member,
    Output,
    Restart,
    RunHousekeeping,
    SchedFree,
    SchedulerReload,
    Settings,
    StartTimer,
    TimerExpired,
    rebuild,
)
from .instance_error import (
    InstanceCode,
    InstanceError,
)
from .instance_invariants import (
    INSTANCE_STATE_RULES,
    INSTANCE_STEP_RULES,
    AccountedOnce,
    FreeAfterHousekeeping,
    NoDoubleBooking,
    OffNodeFreed,
    OffNodeHeld,
    ReferencedIsAllocated,
    broken_instance_rules,
)
from .invariants import (
    STATE_RULES,
    STEP_RULES,
    CleanIsLast,
    EarlyRelease,
    EventuallyClean,
    FinalIsLast,
    NoReleaseWhileReferenced,
    QueuedEpilogSeesAll,
    ReferencesAreHeld,
    ReferencesShrink,
    ReleasedOnce,
    ReleaseGate,
    ReplayIsState,
    broken_rules,
)
from .job import (
    Code,
    Exec,
    Holder,
    HolderKind,
    Job,
    LastRank,
    Phase,
    ProtocolViolation,
    apply,
    decide,
    effect,
    guard,
    settle,
)
from .scheduler import (
    HelloResponse,
    Scheduler,
)

if TYPE_CHECKING:
    from .eventlog import (
        FORMS as FORMS,
    )
    from .eventlog import (
        MAX_LINE as MAX_LINE,
    )
    from .eventlog import (
        LogError as LogError,
    )
    from .eventlog import (
        find_r as find_r,
    )
    from .eventlog import (
        open_log as open_log,
    )
    from .eventlog import (
        read_log as read_log,
    )
    from .eventlog import (
        read_r as read_r,
    )
    from .eventlog import (
        write_log as write_log,
    )
    from .resources import (
        ResourceSet as ResourceSet,
    )
    from .resources import (
        ResourceSetError as ResourceSetError,
    )
    from .resources import (
        ranks_of_summary as ranks_of_summary,
    )

__version__ = "0.1.0"

__all__ = [
    "ALL_RANKS",
    "INSTANCE_STATE_RULES",
    "INSTANCE_STEP_RULES",
    "MAX_ID",
    "MEANING",
    "NO_RANKS",
    "STATE_RULES",
    "STEP_RULES",
    "UNKNOWN",
    "AccountedOnce",
    "Alloc",
    "Clean",
    "CleanIsLast",
    "Code",
    "Completed",
    "Depend",
    "DependencyAdd",
    "DependencyRemove",
    "EarlyRelease",
    "Entry",
    "EpilogFinish",
    "EpilogStart",
    "Event",
    "EventuallyClean",
    "Exec",
    "FinalIsLast",
    "Finding",
    "Finish",
    "FluxRestart",
    "Fragment",
    "Free",
    "FreeAfterHousekeeping",
    "Hello",
    "HelloResponse",
    "Hold",
    "Holder",
    "HolderKind",
    "Hostlist",
    "HostlistError",
    "Housekeeping",
    "IdSet",
    "IdSetError",
    "Input",
    "Instance",
    "InstanceCode",
    "InstanceError",
    "Invalidate",
    "Job",
    "JobEvent",
    "JobException",
    "JobspecUpdate",
    "LastRank",
    "Malformed",
    "Member",
    "Memo",
    "NoDoubleBooking",
    "NoReleaseWhileReferenced",
    "NotALogStartError",
    "OffNodeFreed",
    "OffNodeHeld",
    "Output",
    "PartialFree",
    "Phase",
    "Priority",
    "PrologFinish",
    "PrologStart",
    "ProtocolViolation",
    "QueuedEpilogSeesAll",
    "ReferencedIsAllocated",
    "ReferencesAreHeld",
    "ReferencesShrink",
    "Release",
    "ReleaseGate",
    "ReleasedOnce",
    "ReplayIsState",
    "Report",
    "ResourceUpdate",
    "Restart",
    "RunHousekeeping",
    "SchedFree",
    "Scheduler",
    "SchedulerReload",
    "SetFlags",
    "Settings",
    "Start",
    "StartTimer",
    "Submit",
    "Timer",
    "TimerExpired",
    "Unknown",
    "Urgency",
    "Validate",
    "apply",
    "begin_report",
    "broken_instance_rules",
    "broken_rules",
    "check_entries",
    "decide",
    "effect",
    "guard",
    "known_ranks",
    "looks_cut_short",
    "make_event",
    "rebuild",
    "settle",
    "to_context",
]

_SHELL = {
    "FORMS": "eventlog",
    "MAX_LINE": "eventlog",
    "LogError": "eventlog",
    "find_r": "eventlog",
    "open_log": "eventlog",
    "read_log": "eventlog",
    "read_r": "eventlog",
    "write_log": "eventlog",
    "ResourceSet": "resources",
    "ResourceSetError": "resources",
    "ranks_of_summary": "resources",
}


def __getattr__(name: str) -> Any:
    if name not in _SHELL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f".{_SHELL[name]}", __name__)
    except ModuleNotFoundError as error:
        raise ImportError(f"{name} needs {error.name}: pip install 'partialrelease[cli]'") from error
    return getattr(module, name)
