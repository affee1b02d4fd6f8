/* A second implementation of one job's rules, written from spec/partial-release.md and spec/protocol.md alone.
 *
 * Ranks are bits of a word: none above 63 is ever allocated here, and 63 stands for all from there on.
 * With -DBROKEN=1, 2 or 3 it has a mistake that is easily made; see BROKEN below.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef BROKEN
#define BROKEN 0
#endif
enum { COUNTS_FINISHES = 1, NO_GATE = 2, ALL_IS_ALLOCATED = 3 };

typedef uint64_t set;
#define EVERY (~(set)0)

enum phase { UNBORN, NEW, DEPEND, PRIORITY, SCHED, RUN, CLEANUP, INACTIVE };
static const char *const phases[] = {"-", "NEW", "DEPEND", "PRIORITY", "SCHED", "RUN", "CLEANUP", "INACTIVE"};

enum code { AfterInactive, MalformedContext, UnknownHolder, DuplicateHolder, WrongPhase, ReleasedWhileReferenced,
            FreeWhileActive, GateClosed, NotHeld, CleanWhileHeld, LastRankFreed, ResourcesLost, NONE };
static const char *const codes[] = {"AfterInactive", "MalformedContext", "UnknownHolder", "DuplicateHolder",
            "WrongPhase", "ReleasedWhileReferenced", "FreeWhileActive", "GateClosed", "NotHeld", "CleanWhileHeld",
            "LastRankFreed", "ResourcesLost"};

struct action { char kind; char description[4096]; set ranks; };

static struct {
    int keep, closed, actions;                 /* closed: freed or lost */
    enum phase phase;
    enum { IDLE, REQUESTED, RUNNING, FINISHED, DONE } exec;
    set exec_ranks, allocation, held, released;
    struct action action[64];
} job;

static char *keys[64], *values[64];            /* the context of the event */
static int fields;

/* -- what is the case -- */

static int exec_is_holder(void) { return job.exec == RUNNING || job.exec == FINISHED; }
static int holders(void) { return job.actions + exec_is_holder(); }

static int prologs(void) {
    int n = 0;
    for (int i = 0; i < job.actions; i++) n += job.action[i].kind == 'p';
    return n;
}

static set referenced(void) {
    set all = exec_is_holder() ? job.exec_ranks : 0;
    for (int i = 0; i < job.actions; i++) all |= job.action[i].ranks;
    return all & job.held;
}

static int gate_open(void) {
    if (BROKEN == NO_GATE) return job.phase == CLEANUP;
    return job.phase == CLEANUP && job.exec != REQUESTED && job.exec != RUNNING;
}

static set releasable(void) { return gate_open() ? job.held & ~referenced() : 0; }

static set all_ranks(void) {
    if (!job.allocation) return EVERY;
    return BROKEN == ALL_IS_ALLOCATED ? job.allocation : job.held;
}

static struct action *find(char kind, const char *description) {
    for (int i = 0; i < job.actions; i++)
        if (job.action[i].kind == kind && (BROKEN == COUNTS_FINISHES || !strcmp(job.action[i].description, description)))
            return &job.action[i];
    return NULL;
}

/* -- contexts -- */

static const char *get(const char *key) {
    for (int i = 0; i < fields; i++)
        if (!strcmp(keys[i], key)) return values[i];
    return NULL;
}

static int is_integer(const char *text) {
    size_t digits = strspn(text + (*text == '-'), "0123456789");
    return digits > 0 && digits < 19 && !text[digits + (*text == '-')];
}

static int read_id(const char **text, long *id) {
    size_t digits = strspn(*text, "0123456789");
    if (!digits || digits > 10 || (**text == '0' && digits > 1)) return 0;
    *id = strtol(*text, NULL, 10);
    *text += digits;
    return *id <= 4294967294;
}

static int read_set(const char *text, set *ids) {      /* RFC 22, as PR-26 has it */
    char inner[4096];
    size_t length = strlen(text);
    long first, end, last = -1;
    *ids = 0;
    if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
        memcpy(inner, text + 1, length - 2);
        inner[length - 2] = 0;
        text = inner;
    }
    if (!*text) return 1;
    for (;; text++) {
        if (!read_id(&text, &first) || first <= last) return 0;
        end = first;
        if (*text == '-' && (text++, !read_id(&text, &end) || end <= first)) return 0;
        for (long id = first; id <= end && id < 64; id++) *ids |= (set)1 << id;
        if (end > 63) *ids |= (set)1 << 63;
        last = end;
        if (!*text) return 1;
        if (*text != ',') return 0;
    }
}

static set ranks_of(const char *text, set all) {
    set ids;
    if (!text || !strcmp(text, "all")) return all;
    read_set(text, &ids);
    return ids;
}

/* The keys of each event: i an integer, s a string, b a boolean, r an idset or "all", d an idset; in capitals: optional. */
static const char *const contexts[][2] = {
    {"submit", "i userid i urgency i flags I version"}, {"priority", "i priority"}, {"alloc", "B bypass"},
    {"prolog-start", "s description"}, {"prolog-finish", "s description i status"}, {"finish", "i status"},
    {"exception", "s type i severity"}, {"release", "r ranks b final S description"},
    {"epilog-start", "s description R ranks"}, {"epilog-finish", "s description i status"},
    {"partial-free", "d ranks"}, {"start", ""}, {"free", ""}, {"clean", ""}, {NULL, NULL}};

static int malformed(const char *name) {
    char spec[128], *type, *key, *rest = spec;
    set ids = 0;
    int row = 0;
    while (contexts[row][0] && strcmp(contexts[row][0], name)) row++;
    if (!contexts[row][0]) return 0;
    strcpy(spec, contexts[row][1]);
    if (!*spec) return fields > 0;
    while ((type = strsep(&rest, " ")) && (key = strsep(&rest, " "))) {
        const char *value = get(key);
        if (!value && *type >= 'a') return 1;
        if (!value) continue;
        switch (*type | 32) {
        case 'i': if (!is_integer(value)) return 1; break;
        case 'b': if (strcmp(value, "true") && strcmp(value, "false")) return 1; break;
        case 'r': if (strcmp(value, "all") && !read_set(value, &ids)) return 1; break;
        case 'd': if (!read_set(value, &ids) || !ids) return 1; break;
        }
    }
    if (!strcmp(name, "submit") && get("version")) return atol(get("version")) != 1;
    if (!strcmp(name, "exception")) return atol(get("severity")) < 0 || atol(get("severity")) > 7;
    if (!strcmp(name, "release")) return get("description") && !strcmp(get("final"), "true");
    if (!strcmp(name, "alloc")) return !get("R") || !read_set(get("R"), &ids) || !ids;
    return 0;
}

/* -- events -- */

#define BREAKS(rule, when) if ((when) && (rule) < broken) broken = (rule)
#define IS(event) (!strcmp(name, event))

static void request_start(void) {
    if (job.phase == RUN && job.exec == IDLE && job.allocation && !prologs()) {
        job.exec = REQUESTED;
        job.exec_ranks = job.held;
    }
}

static void take(set ranks) {
    job.held &= ~ranks;
    job.exec_ranks &= job.held;
    for (int i = 0; job.allocation && i < job.actions; i++) job.action[i].ranks &= job.held;
}

static void start_action(char kind, const char *description, set ranks) {
    struct action *new = &job.action[job.actions++];
    if (job.actions > 63) abort();
    new->kind = kind;
    strcpy(new->description, description);
    new->ranks = ranks;
}

static void end_action(struct action *ended) { *ended = job.action[--job.actions]; }

static void move(enum phase from, enum phase to) { if (job.phase == from) job.phase = to; }

static enum code may_free(void) {
    enum code broken = NONE;
    BREAKS(WrongPhase, !job.allocation || job.closed);
    BREAKS(ReleasedWhileReferenced, referenced());
    BREAKS(FreeWhileActive, holders());
    BREAKS(GateClosed, !gate_open());
    return broken;
}

static enum code may_clean(void) {
    enum code broken = NONE;
    BREAKS(WrongPhase, job.phase != CLEANUP);
    BREAKS(CleanWhileHeld, holders() || job.exec == REQUESTED || (job.allocation && !job.closed));
    return broken;
}

static enum code apply(const char *name) {
    enum code broken = NONE;
    const char *description = get("description") ? get("description") : "";
    int final = get("final") && !strcmp(get("final"), "true");
    set ranks = ranks_of(get("ranks"), EVERY);
    BREAKS(AfterInactive, job.phase == INACTIVE);
    BREAKS(WrongPhase, job.phase == UNBORN && !IS("submit"));
    if (malformed(name)) {
        BREAKS(MalformedContext, 1);
    } else if (IS("submit")) {
        BREAKS(WrongPhase, job.phase != UNBORN);
        if (broken == NONE) job.phase = NEW;
    } else if (IS("alloc")) {
        BREAKS(WrongPhase, job.allocation);
        if (broken == NONE) {
            job.allocation = job.held = ranks_of(get("R"), 0);
            if (job.phase != CLEANUP) job.phase = RUN;
            take(0);
            request_start();
        }
    } else if (IS("prolog-start")) {
        BREAKS(DuplicateHolder, find('p', description));
        BREAKS(WrongPhase, job.exec != IDLE && job.exec != REQUESTED);
        if (broken == NONE) {
            start_action('p', description, job.allocation ? job.held : EVERY);
            if (job.phase == RUN) job.exec = IDLE, job.exec_ranks = 0;
        }
    } else if (IS("prolog-finish") || IS("epilog-finish")) {
        struct action *action = find(*name, description);
        BREAKS(UnknownHolder, !action);
        if (broken == NONE) {
            end_action(action);
            request_start();
        }
    } else if (IS("start")) {
        BREAKS(WrongPhase, job.exec != REQUESTED || prologs());
        if (broken == NONE) job.exec = RUNNING;
    } else if (IS("finish")) {
        BREAKS(WrongPhase, job.exec != REQUESTED && job.exec != RUNNING);
        if (broken == NONE) job.exec = FINISHED, move(RUN, CLEANUP);
    } else if (IS("exception") && !atol(get("severity"))) {
        int restart = !strcmp(get("type"), "scheduler-restart") && job.allocation && !job.closed;
        BREAKS(ResourcesLost, restart && referenced());
        if (broken == NONE) {
            job.phase = CLEANUP;
            if (restart) take(job.held), job.closed = 1;
        }
    } else if (IS("release") && !get("description")) {
        BREAKS(WrongPhase, job.exec == IDLE || job.exec == DONE);
        BREAKS(WrongPhase, final && (job.phase != CLEANUP || job.exec == RUNNING));
        BREAKS(NotHeld, ranks != EVERY && ranks & ~job.exec_ranks);
        if (broken == NONE) {
            job.exec_ranks &= final ? 0 : ~ranks;
            if (final) job.exec = DONE;
        }
    } else if (IS("release")) {
        struct action *epilog = find('e', description);
        BREAKS(UnknownHolder, !epilog);
        BREAKS(WrongPhase, job.phase != CLEANUP);
        BREAKS(NotHeld, epilog && ranks != EVERY && ranks & ~(job.allocation ? epilog->ranks : 0));
        if (broken == NONE) epilog->ranks &= ~ranks;
    } else if (IS("epilog-start")) {
        BREAKS(DuplicateHolder, find('e', description) && !strcmp(find('e', description)->description, description));
        BREAKS(WrongPhase, job.phase != CLEANUP);
        BREAKS(NotHeld, ranks != EVERY && ranks & ~job.held);
        if (broken == NONE) start_action('e', description, ranks == EVERY ? all_ranks() : ranks);
    } else if (IS("partial-free")) {
        BREAKS(WrongPhase, !holders());
        BREAKS(ReleasedWhileReferenced, ranks & referenced());
        BREAKS(GateClosed, !gate_open());
        BREAKS(NotHeld, ranks & ~job.held);
        BREAKS(LastRankFreed, job.keep && ranks == job.held);
        if (broken == NONE) job.released |= ranks, take(ranks);
    } else if (IS("free")) {
        BREAKS(may_free(), 1);
        if (broken == NONE) job.released |= job.held, take(job.held), job.closed = 1;
    } else if (IS("clean")) {
        BREAKS(may_clean(), 1);
        if (broken == NONE) job.phase = INACTIVE;
    } else if (broken == NONE) {
        if (IS("validate")) move(NEW, DEPEND);
        if (IS("invalidate")) move(NEW, INACTIVE);
        if (IS("depend")) move(DEPEND, PRIORITY);
        if (IS("priority")) move(PRIORITY, SCHED);
        if (IS("urgency") || IS("jobspec-update") || IS("flux-restart")) move(SCHED, PRIORITY);
    }
    return broken;
}

/* -- the protocol -- */

static void print_set(const char *before, set ids) {
    printf("%s", before);
    for (int first = 0, some = 0; first < 64; first++) {
        int last = first;
        if (!(ids >> first & 1)) continue;
        while (last < 63 && ids >> (last + 1) & 1) last++;
        printf(last > first ? "%s%d-%d" : "%s%d", some++ ? "," : "", first, last);
        first = last;
    }
}

static void print_state(int waiting) {
    printf("ok\tphase=%s", phases[job.phase]);
    print_set("\theld=", job.held);
    print_set("\treferenced=", referenced());
    print_set("\treleasable=", releasable());
    print_set("\treleased=", job.released);
    set ranks = releasable();
    if (job.keep && ranks == job.held) ranks &= ranks - 1;     /* the lowest stays */
    if (waiting || job.phase != CLEANUP) printf("\tpost=\n");
    else if (may_free() == NONE) printf("\tpost=free\n");
    else if (may_clean() == NONE) printf("\tpost=clean\n");
    else if (ranks) print_set("\tpost=partial-free ", ranks), printf("\n");
    else printf("\tpost=\n");
}

int main(void) {
    static char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        char *rest = line, *what, *name, *field;
        line[strcspn(line, "\n")] = 0;
        what = strsep(&rest, "\t");
        if (!strcmp(what, "reset")) {
            memset(&job, 0, sizeof job);
            job.keep = !strcmp(rest, "last_rank=keep");
            print_state(0);
        } else if (!strcmp(what, "queued")) {
            int waiting = 0;
            while ((name = strsep(&rest, "\t"))) waiting |= !strcmp(name, "epilog-start");
            print_state(waiting);
        } else {
            name = strsep(&rest, "\t");
            for (fields = 0; (field = strsep(&rest, "\t")) && fields < 64; fields++) {
                keys[fields] = strsep(&field, "=");
                values[fields] = field ? field : "";
            }
            enum code broken = apply(name);
            if (broken == NONE) print_state(0);
            else printf("violation\t%s\n", codes[broken]);
        }
        fflush(stdout);
    }
    return 0;
}
