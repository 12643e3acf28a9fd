// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A periodic loop with a guard object for each cycle, figures of its own, and a run file.
//
//     ./loop --duration 5 --period-us 1000 --out loop.tailbound.jsonl
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

#include <pthread.h>
#include <sys/mman.h>

#include <tailbound.hpp>

using namespace std::chrono_literals;

namespace {

struct Options {
    double duration_s = 5.0;
    double period_us = 1000.0;
    std::string out;
};

std::optional<Options> options(int argc, char **argv)
{
    Options o;
    for (int i = 1; i < argc; i += 2) {
        const std::string word = argv[i];
        if (i + 1 == argc) {
            return std::nullopt;
        }
        if (word == "--duration") {
            o.duration_s = std::strtod(argv[i + 1], nullptr);
        } else if (word == "--period-us") {
            o.period_us = std::strtod(argv[i + 1], nullptr);
        } else if (word == "--out") {
            o.out = argv[i + 1];
        } else {
            return std::nullopt;
        }
    }
    return o.duration_s > 0 && o.period_us > 0 ? std::optional{o} : std::nullopt;
}

void sleep_until(std::int64_t due_ns) noexcept
{
    timespec t{};
    t.tv_sec = static_cast<time_t>(due_ns / 1'000'000'000);
    t.tv_nsec = static_cast<long>(due_ns % 1'000'000'000);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
    }
}

/// May this thread be real-time? Threads it makes from here on are what it is.
bool set_realtime(bool on) noexcept
{
    sched_param priority{};
    priority.sched_priority = on ? 20 : 0;
    return pthread_setschedparam(pthread_self(), on ? SCHED_FIFO : SCHED_OTHER, &priority) == 0;
}

void show(const char *name, const tailbound::Summary &s)
{
    if (s.n == 0) {
        return;
    }
    std::cout << "  " << name << ": n " << s.n << ", missed " << s.missed << ", max "
              << static_cast<double>(s.max_ns) / 1e3 << " us, beyond the limit " << s.beyond << '\n';
}

int run(const Options &o)
{
    const std::chrono::nanoseconds period{static_cast<std::int64_t>(o.period_us * 1e3)};
    const bool realtime = set_realtime(true);
    set_realtime(false);
    tailbound::Recorder recorder{tailbound::Config{"example-cpp", period}
                                     .start(period / 2, period / 2)
                                     .completion(period)
                                     .policy(realtime ? "fifo:20" : "other")};
    const std::int64_t end = recorder.now() + static_cast<std::int64_t>(o.duration_s * 1e9);
    tailbound::Moments spans;   // how long the work takes, in ns
    tailbound::P2 median{0.5};

    std::thread loop([&] {
        if (realtime) {
            set_realtime(true);
        }
        volatile double result = 0.0;
        for (auto due = recorder.next_due(); due < end; due = recorder.next_due()) {
            sleep_until(due);
            tailbound::Cycle cycle{recorder, due};
            const auto before = recorder.now();
            for (int i = 1; i < 2000; i++) {   // the work
                result = result + 1.0 / i;
            }
            const auto span = static_cast<double>(recorder.now() - before);
            spans.add(span);
            median.add(span);
        }
        recorder.finish();
    });
    while (recorder.now() < end) {
        std::this_thread::sleep_for(1s);
        const auto figures = recorder.snapshot();
        std::cout << figures.activations << " activations\n";
        show("start", figures.start);
        show("completion", figures.completion);
    }
    loop.join();
    std::cout << "work: mean " << spans.mean() / 1e3 << " us, sd " << spans.sd() / 1e3
              << " us, median about " << median.value() / 1e3 << " us\n";
    if (!o.out.empty()) {
        recorder.write_run(o.out);
    }
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    const auto o = options(argc, argv);
    if (!o) {
        std::cerr << "usage: " << argv[0] << " [--duration S] [--period-us US] [--out FILE]\n";
        return 2;
    }
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        std::cerr << "memory is not locked\n";
    }
    try {
        return run(*o);
    } catch (const tailbound::Error &e) {
        std::cerr << "error: " << e.what() << '\n';
        return 3;
    }
}
