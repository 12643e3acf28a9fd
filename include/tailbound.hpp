// SPDX-License-Identifier: MIT OR Apache-2.0
//
// tailbound.hpp - tailbound.h as classes: header only, C++17, no dependency but the C library.
//
//     tailbound::Recorder recorder{tailbound::Config{"balance", 1ms}.completion(500us)};
//     for (auto due = recorder.next_due(); running; due = recorder.next_due()) {
//         sleep_until(due);
//         tailbound::Cycle cycle{recorder, due};   // the start, now
//         work();
//     }                                            // the end, on every way out
//     recorder.finish();
//     recorder.write_run("balance.tailbound.jsonl");
//
// Opening and writing throw tailbound::Error; what a loop calls never throws, allocates, locks or
// waits. Times are std::chrono::nanoseconds or plain int64_t ns, as in tailbound.h, which says
// what they mean.
#ifndef TAILBOUND_HPP
#define TAILBOUND_HPP

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "tailbound.h"

namespace tailbound {

using nanoseconds = std::chrono::nanoseconds;

/// A call that failed: its status, and in words what was wrong.
class Error : public std::runtime_error {
public:
    Error(int status, const char *text) : std::runtime_error(text), status_(status) {}
    int status() const noexcept { return status_; }

private:
    int status_;
};

/// The version of the library that is running.
inline const char *version() noexcept { return tb_version(); }

/// What a loop is.
class Config {
public:
    Config(std::string name, nanoseconds period) : name_(std::move(name)) {
        tb_config_init(&config_, sizeof config_);
        config_.period_ns = period.count();
    }
    /// Latest acceptable start after the due time, and earliest before it.
    Config &start(nanoseconds late, std::optional<nanoseconds> early = std::nullopt) {
        config_.start_late_ns = late.count();
        config_.start_early_ns = early ? early->count() : TB_NONE;
        return *this;
    }
    /// Latest acceptable completion after the due time, and earliest before it.
    Config &completion(nanoseconds late, std::optional<nanoseconds> early = std::nullopt) {
        config_.completion_late_ns = late.count();
        config_.completion_early_ns = early ? early->count() : TB_NONE;
        return *this;
    }
    /// Starts and completions later than these are kept one by one, with time and number.
    Config &keep_beyond(nanoseconds start, nanoseconds completion) {
        config_.start_threshold_ns = start.count();
        config_.completion_threshold_ns = completion.count();
        return *this;
    }
    /// Scheduling policy of the loop's thread ("fifo:80"), for the record.
    Config &policy(std::string policy) {
        policy_ = std::move(policy);
        return *this;
    }
    /// CPU the loop's thread is pinned to, for the record.
    Config &cpu(int cpu) {
        config_.cpu = cpu;
        return *this;
    }
    /// Clock of the due times: CLOCK_MONOTONIC (as it is), CLOCK_TAI, ...
    Config &clock(int clock) {
        config_.clock = clock;
        return *this;
    }
    /// Confidence of statements about rates.
    Config &confidence(double confidence) {
        config_.confidence = confidence;
        return *this;
    }
    /// The C struct; its texts live as long as this object.
    tb_config c() const noexcept {
        tb_config config = config_;
        config.name = name_.c_str();
        config.policy = policy_.empty() ? nullptr : policy_.c_str();
        return config;
    }

private:
    tb_config config_{};
    std::string name_;
    std::string policy_;
};

using Summary = tb_summary;
using Figures = tb_figures;

/// Records the cycles of one loop. Moves, does not copy; closes itself.
class Recorder {
public:
    explicit Recorder(const Config &config) {
        const tb_config c = config.c();
        recorder_ = tb_open(&c);
        if (recorder_ == nullptr) {
            throw Error(TB_ERR_ARGUMENT, tb_last_error());
        }
    }
    ~Recorder() { tb_close(recorder_); }
    Recorder(const Recorder &) = delete;
    Recorder &operator=(const Recorder &) = delete;
    Recorder(Recorder &&other) noexcept : recorder_(std::exchange(other.recorder_, nullptr)) {}
    Recorder &operator=(Recorder &&other) noexcept {
        std::swap(recorder_, other.recorder_);
        return *this;
    }

    // What a loop calls: never throws, allocates, locks or waits.

    /// The cycle that was due at `due_ns` starts, now. Cycle does this and the end.
    int start(std::int64_t due_ns) noexcept { return tb_cycle_start(recorder_, due_ns); }
    /// It is done, now.
    int end() noexcept { return tb_cycle_end(recorder_); }
    /// The first due time still to come; what has passed is left out and counted as missed.
    std::int64_t next_due() noexcept { return tb_next_due(recorder_); }
    /// The recorder's clock.
    std::int64_t now() const noexcept { return tb_now(recorder_); }
    /// The loop is over.
    void finish() noexcept { tb_finish(recorder_); }

    // From any thread but the loop's.

    /// The figures so far.
    Figures snapshot() const {
        Figures figures{};
        check(tb_snapshot(recorder_, &figures, sizeof figures));
        return figures;
    }
    /// A quantile of one latency (TB_START, TB_COMPLETION); none when the count is too small.
    std::optional<double> quantile(int context, double probability) const {
        double ns = 0.0;
        const int status = tb_quantile(recorder_, context, probability, &ns);
        if (status == TB_ERR_NO_DATA) {
            return std::nullopt;
        }
        check(status);
        return ns;
    }
    /// Takes over what the loop recorded; at least every quarter of an hour.
    void poll() { check(tb_poll(recorder_)); }
    /// A run file for tailbound show, report, compare and bound.
    void write_run(const std::string &path) const { check(tb_write_run(recorder_, path.c_str())); }
    /// The figures and the verdict as JSON.
    void write_json(const std::string &path) const {
        check(tb_write_json(recorder_, path.c_str()));
    }
    /// The same as text.
    std::string json() const {
        std::string text;
        for (;;) {
            std::size_t needed = 0;
            const int status = tb_json(recorder_, text.empty() ? nullptr : &text[0], text.size(),
                                       &needed);
            if (status == TB_OK) {
                text.resize(needed - 1);
                return text;
            }
            if (status != TB_ERR_SIZE) {
                check(status);
            }
            text.resize(needed + 64); // It may grow while the loop runs.
        }
    }
    /// The C handle.
    tb_recorder *c() const noexcept { return recorder_; }

private:
    static void check(int status) {
        if (status != TB_OK) {
            throw Error(status, tb_last_error());
        }
    }
    tb_recorder *recorder_ = nullptr;
};

/// One cycle of a loop: begins with the object and ends with it.
class Cycle {
public:
    Cycle(Recorder &recorder, std::int64_t due_ns) noexcept
        : recorder_(recorder), status_(recorder.start(due_ns)) {}
    ~Cycle() {
        if (status_ == TB_OK) {
            recorder_.end();
        }
    }
    Cycle(const Cycle &) = delete;
    Cycle &operator=(const Cycle &) = delete;
    /// TB_OK, or why the start was refused.
    int status() const noexcept { return status_; }

private:
    Recorder &recorder_;
    int status_;
};

/// Mean, standard deviation, skewness and kurtosis of numbers as they come.
class Moments {
public:
    Moments() noexcept { tb_moments_init(&moments_); }
    /// False when `x` is not finite.
    bool add(double x) noexcept { return tb_moments_add(&moments_, x) == TB_OK; }
    Moments &operator+=(const Moments &other) noexcept {
        tb_moments_merge(&moments_, &other.moments_);
        return *this;
    }
    std::uint64_t n() const noexcept { return moments_.n; }
    double mean() const noexcept { return tb_moments_mean(&moments_); }
    double sd() const noexcept { return tb_moments_sd(&moments_); }
    double skewness() const noexcept { return tb_moments_skewness(&moments_); }
    double kurtosis() const noexcept { return tb_moments_kurtosis(&moments_); }

private:
    tb_moments moments_;
};

/// An estimate of one quantile of numbers as they come, without keeping them.
class P2 {
public:
    explicit P2(double probability) {
        if (tb_p2_init(&p2_, probability) != TB_OK) {
            throw Error(TB_ERR_ARGUMENT, "the probability of a quantile is between 0 and 1");
        }
    }
    /// False when `x` is not finite.
    bool add(double x) noexcept { return tb_p2_add(&p2_, x) == TB_OK; }
    std::uint64_t n() const noexcept { return p2_.n; }
    double value() const noexcept { return tb_p2_value(&p2_); }

private:
    tb_p2 p2_;
};

} // namespace tailbound

#endif // TAILBOUND_HPP
