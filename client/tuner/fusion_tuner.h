/* Online tuning of a running program, for C and, through fusion_tuner.hpp, for C++.
 *
 * A program says which parameters a section of its code has. From then on it asks for the values of the next
 * run and says when the section starts and stops; a server (fusion-server) searches, remembers across runs
 * and machines, and shares what it learns among all programs that run the same section on the same class of
 * device.
 *
 * Nothing here waits for the server but fusion_tuner_flush. Values come from a snapshot in the process, which
 * a thread of the library keeps fresh. Where the server is absent, slow or started again, the program goes on
 * with the last good choice (the defaults, where there is none), the library says so once through `notice`,
 * and what was reported meanwhile is sent later, as far as it was kept (fusion_tuner_counters).
 *
 * Threads: every function may be called from any thread. What a thread has got from fusion_tuner_next and
 * started belongs to that thread; sections may nest, and run in several threads at once, with different
 * values. Fork: in a child process the library goes on answering with the choice of the moment of the fork,
 * and reports nothing; it says so once. After exec, or in a program that creates its tuner after the fork,
 * there is no such limit. Signals: fusion_tuner_next, _start and _stop take no lock after the first call of a
 * thread.
 *
 * Errors: functions return FUSION_TUNER_OK or a code; fusion_tuner_message() says what was wrong and what
 * would be right. After an error the program can go on: the section, if it is there, answers with its
 * defaults. Strings are UTF-8, and copied. */
#ifndef FUSION_TUNER_H_
#define FUSION_TUNER_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FUSION_TUNER_API __attribute__((visibility("default")))
#else
#define FUSION_TUNER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers are those of gRPC's and Abseil's status codes. */
typedef enum fusion_tuner_code {
  FUSION_TUNER_OK = 0,
  FUSION_TUNER_INVALID_ARGUMENT = 3,  /* bounds reversed, step zero, text that is not UTF-8, a constraint that
                                         nothing satisfies, a NaN ... */
  FUSION_TUNER_DEADLINE_EXCEEDED = 4, /* fusion_tuner_flush: the server did not answer in time */
  FUSION_TUNER_NOT_FOUND = 5,         /* no section of this name */
  FUSION_TUNER_ALREADY_EXISTS = 6,    /* declared before, and differently */
  FUSION_TUNER_RESOURCE_EXHAUSTED = 8, /* 10,000 sections, counted with other sizes */
  /* stop without start, start twice, a section changed after it was declared */
  FUSION_TUNER_FAILED_PRECONDITION = 9,
  FUSION_TUNER_INTERNAL = 13,
  FUSION_TUNER_UNAVAILABLE = 14, /* embedded: the data directory is in use or cannot be written */
  FUSION_TUNER_UNAUTHENTICATED = 16
} fusion_tuner_code;

typedef struct fusion_tuner fusion_tuner;
typedef struct fusion_tuner_section fusion_tuner_section;
typedef struct fusion_tuner_parameter fusion_tuner_parameter;

/* Says what went wrong in the last call of this thread that did not return FUSION_TUNER_OK; "" when none has.
 * The text is good until the next call of this thread. */
FUSION_TUNER_API const char* fusion_tuner_message(void);

/* ---- The tuner */

typedef struct fusion_tuner_options {
  size_t size;         /* sizeof(fusion_tuner_options) */
  const char* program; /* NULL: name of the executable */
  const char* server;  /* "host:port"; "embedded": in this process; NULL: $FUSION_SERVER, else the config of
                          fusion-client, else embedded */
  const char* device_class;   /* e.g. "NVIDIA H200"; NULL: model and number of the processors */
  const char* data_directory; /* of an embedded server; NULL: as fusion-client */
  const char* strategy;       /* NULL: "portfolio". Others: exhaustive, random, hill-climbing, nelder-mead,
                                 annealing, bayesian */
  double exploration_share; /* what exploring may cost once something good is known, of the running time; < 0:
                               the server's (0.02); 0: never explore then; 1: without limit */
  /* The line is told to a person, without the end of line; NULL: stderr. A thread of the library calls it,
   * for which the end of the tuner waits: neither exit() nor fusion_tuner_destroy there. */
  void (*notice)(const char* line, void* data);
  void* notice_data;
} fusion_tuner_options;

/* Sets all options as if NULL; exploration_share is -1. */
FUSION_TUNER_API void fusion_tuner_options_init(fusion_tuner_options* options);

/* options may be NULL. The call does not wait for the server, and succeeds without one; it fails where an
 * embedded one cannot be had (UNAVAILABLE) or an option makes no sense. */
FUSION_TUNER_API int fusion_tuner_create(const fusion_tuner_options* options, fusion_tuner** tuner);

/* Sends what is left for at most a second, and frees the tuner with all its sections and parameters; no other
 * call may be in progress. NULL is ignored. */
FUSION_TUNER_API void fusion_tuner_destroy(fusion_tuner* tuner);

/* Waits until everything reported so far is stored by the server, or refused by it. DEADLINE_EXCEEDED after
 * so many seconds. */
FUSION_TUNER_API int fusion_tuner_flush(fusion_tuner* tuner, double seconds);

typedef struct fusion_tuner_counters_t {
  size_t size;           /* sizeof(fusion_tuner_counters_t) */
  uint64_t reported;     /* runs that stopped or were reported */
  uint64_t acknowledged; /* of these, stored by the server */
  uint64_t dropped;      /* of these, lost: no room for them while no server answered */
  uint64_t explored;     /* runs with proposals instead of the choice in force */
  uint64_t reconnections;
  int connected;
  uint64_t refused; /* of the reported: the server does not store them, as was said through `notice` */
} fusion_tuner_counters_t;
FUSION_TUNER_API int fusion_tuner_counters(fusion_tuner* tuner, fusion_tuner_counters_t* counters);

/* ---- Parameters: made first, then added to one section each */

/* lower + k * step, up to upper. The three of one kind live until the tuner is destroyed. */
FUSION_TUNER_API int fusion_tuner_integer_range(fusion_tuner* tuner, const char* name, int64_t lower,
                                                int64_t upper, int64_t step,
                                                fusion_tuner_parameter** parameter);
/* The powers of two from lower to upper, which are powers of two. */
FUSION_TUNER_API int fusion_tuner_power_of_two(fusion_tuner* tuner, const char* name, int64_t lower,
                                               int64_t upper, fusion_tuner_parameter** parameter);
FUSION_TUNER_API int fusion_tuner_enumeration(fusion_tuner* tuner, const char* name,
                                              const char* const* values, size_t count,
                                              fusion_tuner_parameter** parameter);
/* logarithmic: equal ratios are equal steps. */
FUSION_TUNER_API int fusion_tuner_real_range(fusion_tuner* tuner, const char* name, double lower,
                                             double upper, int logarithmic,
                                             fusion_tuner_parameter** parameter);
/* Sets the value while nothing is known; for an enumeration it is the index. Without it the value is the
 * middle, for an enumeration the first. */
FUSION_TUNER_API int fusion_tuner_parameter_default(fusion_tuner_parameter* parameter, double value);
/* The parameter has a meaning only where the expression holds: "algorithm == tiled". It may name
 * parameters added before it, and sizes. */
FUSION_TUNER_API int fusion_tuner_parameter_condition(fusion_tuner_parameter* parameter,
                                                      const char* expression);

/* ---- Sections */

/* Begins a section; its parts are added, then it is declared. ALREADY_EXISTS: there is one of this name.
 * RESOURCE_EXHAUSTED: there are too many. */
FUSION_TUNER_API int fusion_tuner_section_create(fusion_tuner* tuner, const char* name,
                                                 fusion_tuner_section** section);
/* Parameters have the indices 0, 1, ... in the order in which they are added. FAILED_PRECONDITION: it is in
 * another section. */
FUSION_TUNER_API int fusion_tuner_section_parameter(fusion_tuner_section* section,
                                                    fusion_tuner_parameter* parameter);
/* "tile * stages <= 48". Numbers, names of parameters and sizes, values of enumerations, + - * / %,
 * comparisons, && || !, min(a, b), max(a, b), abs(a), log2(a), parentheses. */
FUSION_TUNER_API int fusion_tuner_section_constraint(fusion_tuner_section* section, const char* expression);
/* A named size of the input. What is learned for some sizes is where the search begins for others. */
FUSION_TUNER_API int fusion_tuner_section_size(fusion_tuner_section* section, const char* name,
                                               int64_t value);
/* Another objective than time: runs are then reported (fusion_tuner_report), not stopped. Values must be
 * positive. */
FUSION_TUNER_API int fusion_tuner_section_objective(fusion_tuner_section* section, const char* name,
                                                    const char* unit, int maximize);
/* Checks the whole and starts tuning it. What is wrong with it is said here; only what other programs do is
 * found out later (fusion_tuner_section_status). */
FUSION_TUNER_API int fusion_tuner_section_declare(fusion_tuner_section* section);
/* A declared section for other sizes, which are given for all names that it was declared with, in that order;
 * declared already. The same sizes give the same section. */
FUSION_TUNER_API int fusion_tuner_section_with_sizes(fusion_tuner_section* section, const int64_t* sizes,
                                                     size_t count, fusion_tuner_section** with_sizes);
/* Finds a section by name; NOT_FOUND says the names that are near. */
FUSION_TUNER_API int fusion_tuner_section_find(fusion_tuner* tuner, const char* name,
                                               fusion_tuner_section** section);
/* Returns what the server said of it: OK also while it has said nothing. ALREADY_EXISTS: another program that
 * runs now has declared it differently; this one goes on with its defaults. */
FUSION_TUNER_API int fusion_tuner_section_status(fusion_tuner_section* section);

/* ---- Runs: asked for in a thread, started and ended by the same */

typedef union fusion_tuner_value {
  int64_t integer; /* of an integer range, a power of two; of an enumeration the index */
  double real;     /* of a real range */
} fusion_tuner_value;

/* The values of the calling thread's next run, one for each parameter: the same until that run has ended.
 * Good until the next call with this section in this thread. Never NULL for a declared section; NULL with a
 * message for others. */
FUSION_TUNER_API const fusion_tuner_value* fusion_tuner_next(fusion_tuner_section* section);
/* FAILED_PRECONDITION: the section is started in this thread already, or not declared. */
FUSION_TUNER_API int fusion_tuner_start(fusion_tuner_section* section);
/* Ends the run and reports the seconds since its start. FAILED_PRECONDITION: it was not started in this
 * thread. */
FUSION_TUNER_API int fusion_tuner_stop(fusion_tuner_section* section);
/* Ends the run, started or not, and reports this value: seconds, or as the objective says. INVALID_ARGUMENT:
 * not positive and finite; the run goes on then. */
FUSION_TUNER_API int fusion_tuner_report(fusion_tuner_section* section, double value);
/* Ends the run, started or not: with these values it cannot be done. */
FUSION_TUNER_API int fusion_tuner_fail(fusion_tuner_section* section);
/* Ends the run, started or not, and reports nothing. */
FUSION_TUNER_API int fusion_tuner_cancel(fusion_tuner_section* section);

/* This is for sections that call themselves, and for runs that end in another thread than they began. */
typedef struct fusion_tuner_run {
  fusion_tuner_section* section;
  const fusion_tuner_value* values; /* good until the tuner is destroyed or the run has ended */
  uint64_t internal[4];
} fusion_tuner_run;
/* Begins the run and starts the clock. */
FUSION_TUNER_API int fusion_tuner_run_begin(fusion_tuner_section* section, fusion_tuner_run* run);
FUSION_TUNER_API int fusion_tuner_run_stop(fusion_tuner_run* run);
FUSION_TUNER_API int fusion_tuner_run_report(fusion_tuner_run* run, double value);
FUSION_TUNER_API int fusion_tuner_run_fail(fusion_tuner_run* run);
FUSION_TUNER_API int fusion_tuner_run_cancel(fusion_tuner_run* run);

/* The best known values, whatever is explored meanwhile. Copies min(count, number of parameters). */
FUSION_TUNER_API int fusion_tuner_best(fusion_tuner_section* section, fusion_tuner_value* values,
                                       size_t count);
/* 1: nothing better is expected; 0: the search goes on; -1: an error. */
FUSION_TUNER_API int fusion_tuner_converged(fusion_tuner_section* section);

/* ---- The three calls of AtuneRT, for one integer parameter; a section is declared when it is first asked
 * for */

/* lower + k * step, up to upper, on a tuner that is created at the first call with default options. Other
 * bounds are other sizes of the same section. On an error the result is lower + the middle of the steps, and
 * fusion_tuner_message() says why. */
FUSION_TUNER_API int64_t fusion_get_partition_parameter(const char* section, int64_t lower, int64_t upper,
                                                        int64_t step);
FUSION_TUNER_API int fusion_start_measurements(const char* section);
FUSION_TUNER_API int fusion_stop_measurements(const char* section);

#ifdef __cplusplus
}
#endif

#endif
