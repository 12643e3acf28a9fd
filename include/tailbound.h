/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tailbound.h - how late the cycles of your own control loop start, and how late they are done.
 *
 *     tb_config config;
 *     tb_config_init(&config, sizeof config);
 *     config.name = "balance";
 *     config.period_ns = 1000000;
 *     config.completion_late_ns = 500000;
 *     tb_recorder *rec = tb_open(&config);          // before the loop: allocates, takes some ms
 *     if (!rec) { fputs(tb_last_error(), stderr); ... }
 *
 *     for (int64_t due = tb_next_due(rec); running; due = tb_next_due(rec)) {
 *         sleep_until(due);                         // clock_nanosleep(2), TIMER_ABSTIME
 *         tb_cycle_start(rec, due);
 *         work();
 *         tb_cycle_end(rec);
 *     }
 *     tb_finish(rec);
 *     tb_write_run(rec, "balance.tailbound.jsonl"); // tailbound show, report, compare, bound
 *     tb_close(rec);
 *
 * Times are ns. Latencies count from the due time, and are negative when early. Everything due
 * is accounted for: a loop that leaves activations out (as the one above does when it is late)
 * has them counted as missed, with the latency they would have had. Nothing is sampled.
 *
 * Calls marked HOT do not allocate, lock, wait, or make a system call; their clock is read
 * through the vDSO where the machine has one. They may be made from a real-time thread. For one
 * recorder they belong to one thread at a time: a second one gets TB_ERR_BUSY and nothing is
 * recorded. All other calls may be made from any thread, at any time, and never hold up a hot
 * call; do not make them from the loop.
 *
 * A recorder that is null, closed or not one of tb_open is refused with TB_ERR_HANDLE. Calls
 * return TB_OK (0) or a negative status; tb_error_text says what it means, and tb_last_error
 * what exactly was wrong in the last cold call of the calling thread.
 *
 * C99 and C++. Link with `pkg-config --libs tailbound`, or in CMake with tailbound::tailbound.
 */
#ifndef TAILBOUND_H
#define TAILBOUND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TB_API __attribute__((visibility("default")))
#else
#define TB_API
#endif

/* ---- version and status ---------------------------------------------------------------- */

/* The version this header belongs to. */
#define TB_VERSION_MAJOR 0
#define TB_VERSION_MINOR 2
#define TB_VERSION_PATCH 0

#define TB_OK 0             /* done */
#define TB_ERR_HANDLE (-1)  /* null, never opened, or closed */
#define TB_ERR_ARGUMENT (-2) /* null, out of range or not a number */
#define TB_ERR_ORDER (-3)   /* a due time not after the one before, or an end without a start */
#define TB_ERR_BUSY (-4)    /* another thread is in a call of the same loop */
#define TB_ERR_FULL (-5)    /* TB_RECORDERS_MAX are open */
#define TB_ERR_MEMORY (-6)  /* no memory, or not allowed to lock more */
#define TB_ERR_IO (-7)      /* the file could not be written */
#define TB_ERR_SIZE (-8)    /* the buffer is too small */
#define TB_ERR_NO_DATA (-9) /* there is no data for an answer yet */
#define TB_ERR_BUG (-10)    /* a bug of libtailbound */

/* A time that is not there: no limit, no value. */
#define TB_NONE INT64_MIN

/* The two latencies of a cycle. */
#define TB_START 0      /* from the due time to the start */
#define TB_COMPLETION 1 /* from the due time to the completion */

/* Recorders that can be open at a time. Each takes about 1.5 MiB. */
#define TB_RECORDERS_MAX 64

/* The version of the library that is running, "0.2.0". */
TB_API const char *tb_version(void);

/* The meaning of a status; never null. */
TB_API const char *tb_error_text(int status);

/* What the last cold call of this thread that failed was about; "" if none did. Valid until the
 * next one fails. */
TB_API const char *tb_last_error(void);

/* ---- a recorder -------------------------------------------------------------------------- */

typedef struct tb_recorder tb_recorder;

/* What a loop is. Fill it with tb_config_init, then change what differs. */
typedef struct tb_config {
    size_t size;                     /* sizeof (tb_config), set by tb_config_init */
    const char *name;                /* for people, UTF-8; null: "loop" */
    const char *policy;              /* of the loop's thread, as "fifo:80"; null: not known */
    int64_t period_ns;               /* from one due time to the next, 10 us to 1 h; required */
    int64_t start_late_ns;           /* latest acceptable start after the due time, or TB_NONE */
    int64_t start_early_ns;          /* earliest, as a time before the due time, or TB_NONE */
    int64_t completion_late_ns;      /* latest acceptable completion after the due time */
    int64_t completion_early_ns;     /* earliest, as a time before the due time */
    int64_t start_threshold_ns;      /* keep later starts one by one; TB_NONE: start_late_ns */
    int64_t completion_threshold_ns; /* and later completions; TB_NONE: completion_late_ns */
    double confidence;               /* of statements about rates: 0.95 */
    int32_t clock;                   /* of the due times: CLOCK_MONOTONIC, CLOCK_TAI, ... */
    int32_t cpu;                     /* the loop's thread is pinned to; -1: not, or not known */
} tb_config;

/* Fills `config` with the defaults: no limits, CLOCK_MONOTONIC. `size` is sizeof *config. */
TB_API int tb_config_init(tb_config *config, size_t size);

/* Opens a recorder: maps and touches its memory, and runs through every path once. Null when it
 * fails; tb_last_error says why. */
TB_API tb_recorder *tb_open(const tb_config *config);

/* Closes it. What it recorded is gone; write it down before. */
TB_API int tb_close(tb_recorder *recorder);

/* ---- the loop ---------------------------------------------------------------------------- */

/* HOT. The cycle that was due at `due_ns` starts, now. The first call begins the schedule. A due
 * time more than a period and a half after the one before leaves out what lies between: those
 * activations are missed. Refused (TB_ERR_ORDER) are a due time not after the one before, and one
 * that leaves out activations while it is still more than a period away. */
TB_API int tb_cycle_start(tb_recorder *recorder, int64_t due_ns);

/* HOT. The same with a time the loop read itself, on the recorder's clock. */
TB_API int tb_cycle_start_at(tb_recorder *recorder, int64_t due_ns, int64_t now_ns);

/* HOT. The cycle is done, now. A cycle that is never ended is counted, and its completion is
 * not known; a loop that never ends any has figures of its starts only. */
TB_API int tb_cycle_end(tb_recorder *recorder);

/* HOT. The same with a time the loop read itself. */
TB_API int tb_cycle_end_at(tb_recorder *recorder, int64_t now_ns);

/* HOT. When to run next: the first due time after that of the cycle last started that is still
 * to come. What has passed is left out (and will be counted as missed). Before the first cycle,
 * a period from now. A loop that would rather catch up adds the period to its due time itself.
 * TB_NONE for a bad recorder, or while another thread is in a call of the same loop. */
TB_API int64_t tb_next_due(tb_recorder *recorder);

/* HOT. The recorder's clock; TB_NONE for a bad recorder. */
TB_API int64_t tb_now(const tb_recorder *recorder);

/* The loop is over: the last, partial second is published. From the loop's thread after its last
 * cycle, or from any thread when the loop's has ended. A run written before that is one that was
 * interrupted. */
TB_API int tb_finish(tb_recorder *recorder);

/* ---- figures ----------------------------------------------------------------------------- */

/* One latency, per due activation: missed ones count with the latency they would have had. What
 * the data does not support is NaN or TB_NONE. */
typedef struct tb_summary {
    uint64_t n;              /* due activations: served and missed */
    uint64_t missed;         /* of these, missed */
    uint64_t beyond;         /* certainly outside the limits */
    uint64_t beyond_unknown; /* perhaps: they share a histogram bucket with the limit */
    uint64_t exceedances;    /* cycles kept one by one so far */
    uint64_t dropped;        /* that should have been kept, but nobody polled */
    uint64_t moments_n;      /* activations that mean and sd cover: up to the last full second */
    uint64_t over_range;     /* activations of 17.2 s and later; they share one bucket */
    int64_t min_ns;          /* exact */
    int64_t max_ns;          /* exact */
    double mean_ns;
    double sd_ns;            /* over n - 1 */
    double p50_ns;           /* quantiles are known to 0.1 % */
    double p95_ns;
    double p99_ns;
    double p99_9_ns;
    double p99_99_ns;
    double p99_999_ns;
} tb_summary;

typedef struct tb_figures {
    uint64_t activations; /* that fell due so far, served or missed */
    uint64_t unended;     /* cycles without an end */
    uint64_t refused;     /* calls of the loop that were refused */
    uint64_t finished;    /* 1 after tb_finish */
    int64_t first_due_ns; /* on the recorder's clock, or TB_NONE */
    tb_summary start;
    tb_summary completion;
} tb_figures;

/* The figures so far; `size` is sizeof *figures. */
TB_API int tb_snapshot(tb_recorder *recorder, tb_figures *figures, size_t size);

/* Any quantile of one latency (TB_START, TB_COMPLETION), per due activation. TB_ERR_NO_DATA when
 * fewer than ten activations lie beyond it. */
TB_API int tb_quantile(tb_recorder *recorder, int context, double probability, double *value_ns);

/* Takes over what the loop has recorded. Snapshots and writing do it too. The rings hold 17 min
 * of per-second records and 4096 exceedances; what finds them full is dropped, counted and
 * reported. The histograms miss nothing for 2^32 cycles. */
TB_API int tb_poll(tb_recorder *recorder);

/* ---- writing it down --------------------------------------------------------------------- */

/* A whole run file, with the facts of the machine: for tailbound show, report, compare, bound.
 * The two latencies are contexts `start` and `completion`, each judged by its own limits. At any
 * time; whole or not at all. */
TB_API int tb_write_run(tb_recorder *recorder, const char *path);

/* The figures and the verdict as one JSON object. */
TB_API int tb_write_json(tb_recorder *recorder, const char *path);

/* The same into memory. `needed` (may be null) gets the bytes it takes with the closing zero;
 * TB_ERR_SIZE when `capacity` is less. */
TB_API int tb_json(tb_recorder *recorder, char *buffer, size_t capacity, size_t *needed);

/* ---- numbers of your own ----------------------------------------------------------------- */
/* Plain structs of yours: nothing to open or close, no allocation, all calls HOT. One thread at a
 * time a struct. */

/* Moments of numbers as they come, or merged from parts (Welford, Terriberry, Pebay). */
typedef struct tb_moments {
    uint64_t n;
    double mean;
    double m2, m3, m4; /* sums of powers of the distances from the mean */
} tb_moments;

TB_API int tb_moments_init(tb_moments *moments);
TB_API int tb_moments_add(tb_moments *moments, double x); /* not finite: TB_ERR_ARGUMENT */
TB_API int tb_moments_merge(tb_moments *moments, const tb_moments *other);
TB_API double tb_moments_mean(const tb_moments *moments);     /* NaN when n = 0 */
TB_API double tb_moments_sd(const tb_moments *moments);       /* over n - 1; NaN when n < 2 */
TB_API double tb_moments_skewness(const tb_moments *moments); /* g1; NaN without spread */
TB_API double tb_moments_kurtosis(const tb_moments *moments); /* excess, g2 */

/* One quantile of numbers as they come, in five markers (Jain and Chlamtac's P-square). It is an
 * estimate: on latencies with bursts it can be off by a factor of two. tb_quantile is not. */
typedef struct tb_p2 {
    double probability;
    uint64_t n;
    double heights[5];
    double ranks[5];
} tb_p2;

TB_API int tb_p2_init(tb_p2 *p2, double probability);
TB_API int tb_p2_add(tb_p2 *p2, double x); /* not finite: TB_ERR_ARGUMENT */
TB_API double tb_p2_value(const tb_p2 *p2); /* NaN when n = 0; exact up to five numbers */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TAILBOUND_H */
