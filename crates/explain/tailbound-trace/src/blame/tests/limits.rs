// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler's limits of real-time time, idle CPUs, and what a guest cannot know, on made-up events.

use super::*;

/// Another real-time thread, which has the CPU all the time.
const HOG: i32 = 4;
const HOG_PRIO: i32 = 98;

fn ends_by(story: Story, function: u64, from: i32) -> Story {
    story
        .then(49_990_000, 0, from, HARD, Event::VectorEntry(Vector::Timer))
        .then(49_991_000, 0, from, HARD, Event::TimerExpire { timer: 2, function, now_ns: 0 })
        .then(49_993_000, 0, from, HARD, Event::VectorExit(Vector::Timer))
        .target(50_000_000, from, 120)
}

/// As Linux 6.1 does it: the limit was reached while the measured thread had the CPU, which then slept.
fn sleeps_into_the_limit(next: i32) -> Story {
    let mut story = Story::new(HOG, HOG_PRIO);
    let waking = Event::Waking { pid: TARGET, prio: PRIO, cpu: 0, comm: Word::new("target") };
    for (t, pid, event) in [
        (90_000, HOG, waking),
        (89_000, HOG, switch((HOG, HOG_PRIO, 0), (TARGET, PRIO))),
        (60_000, TARGET, switch((TARGET, PRIO, 1), (next, 120))),
    ] {
        story.entries.push(Entry { t_ns: DUE - t, ..at(0, 0, pid, THREAD, event) });
    }
    story.timer(200, next)
}

#[test]
fn throttling_that_begins_where_a_real_time_thread_sleeps_is_throttling() {
    let told = |function| ends_by(sleeps_into_the_limit(5), function, 5).culprit();
    assert_eq!(told(PERIOD), named(Cause::RtThrottling, "t5-5"));
    assert_eq!(told(SERVER), named(Cause::FairServer, "t5-5"));
    // Where no real-time thread was left waiting, the ordinary one had the CPU by right.
    let alone = ends_by(Story::new(5, 120).timer(200, 5), PERIOD, 5);
    assert_eq!(alone.culprit(), named(Cause::NotPreemptible, "t5-5"));
}

#[test]
fn a_throttled_cpu_without_ordinary_threads_idles() {
    let record = ends_by(sleeps_into_the_limit(0), PERIOD, 0).metal();
    assert_eq!(record.culprit().0, Cause::RtThrottling, "{:#?}", record.parts);
    let text = record.chain.join(" ");
    assert!(text.contains("no CPU: real-time throttling, "), "{text}");
}

#[test]
fn an_ordinary_thread_that_follows_another_while_the_late_one_waits_is_let_in() {
    // The switch to the first was lost; the scheduler chose a second one over the late thread.
    let story = Story::new(5, 120).timer(200, 5).then(
        20_000_000,
        0,
        5,
        THREAD,
        switch((5, 120, 1), (6, 120)),
    );
    let record = ends_by(story, PERIOD, 6).metal();
    assert_eq!(record.culprit(), (Cause::RtThrottling, "t6-6"), "{:#?}", record.parts);
}

#[test]
fn an_idle_cpu_of_a_guest_may_have_been_its_hosts() {
    let idle = |to: u64| {
        Story::new(0, 120)
            .then(0, 0, 0, THREAD, Event::Idle { state: Some(1) })
            .timer(to, 0)
            .target(to + 4_000, 0, 120)
    };
    let guest = Ground { virtual_machine: Some(true), ..Ground::default() };
    let record = idle(20_000_000).explain(guest);
    assert_eq!(
        record.culprit(),
        (Cause::Unexplained, "left an idle state, or the hypervisor had the CPU")
    );
    assert_eq!(idle(60_000).explain(guest).culprit().0, Cause::IdleExit);
    assert_eq!(idle(300_000).metal().culprit().0, Cause::IdleExit);
    assert_eq!(idle(20_000_000).metal().culprit().0, Cause::Unexplained);
}

#[test]
fn a_record_behind_a_long_silence_does_not_say_who_had_the_cpu() {
    let guest = Ground { virtual_machine: Some(true), ..Ground::default() };
    // A guest that was stopped for 20 ms goes on where its kernel makes a record, interrupts disabled.
    let held_off = || {
        Story::new(5, 120)
            .then(20_000_000, 0, 5, IRQS_OFF, Event::Wakeup { pid: 4, cpu: 0 })
            .timer(20_001_000, 5)
            .target(20_005_000, 5, 120)
    };
    let record = held_off().explain(guest);
    let (cause, who) = record.culprit();
    assert_eq!(cause, Cause::Unexplained, "{:#?}", record.parts);
    assert!(who.contains("t5-5, or the hypervisor had the CPU"), "{who}");
    assert_eq!(held_off().culprit(), named(Cause::InterruptsOff, "t5-5"), "nobody stops metal");
    // The same while the measured loop had the CPU, which only reads its clock.
    let mut on_its_way = Story::new(5, 120).timer(200, 5).target(5_000, 5, 120).then(
        6_000,
        0,
        TARGET,
        THREAD,
        Event::Wakeup { pid: 4, cpu: 0 },
    );
    on_its_way.end = 20_000_000;
    let record = on_its_way.explain(guest);
    assert_eq!(record.culprit().0, Cause::Host, "{:#?}", record.parts);
}

#[test]
fn a_handler_that_is_silent_for_very_long_may_have_been_stopped_by_the_host() {
    let guest = Ground { virtual_machine: Some(true), ..Ground::default() };
    let story = |to: u64| {
        Story::new(5, 120)
            .timer(200, 5)
            .then(3_500, 0, 5, HARD, Event::VectorEntry(Vector::Timer))
            .then(3_600, 0, 5, HARD, Event::TimerExpire { timer: 9, function: SERVER, now_ns: 0 })
            .then(to, 0, 5, HARD, Event::VectorExit(Vector::Timer))
            .target(to + 1_000, 5, 120)
    };
    let record = story(20_000_000).explain(guest);
    assert_eq!(
        record.culprit(),
        (Cause::Unexplained, "timer interrupt dl_task_timer, or the hypervisor had the CPU")
    );
    assert_eq!(story(900_000).explain(guest).culprit().0, Cause::TimerInterrupt);
    assert_eq!(story(20_000_000).culprit().0, Cause::TimerInterrupt, "on metal it is its own");
}

#[test]
fn a_message_is_over_where_its_thread_makes_another_record() {
    let told = |between: Option<Event>| {
        let story = Story::new(5, 120).then(100, 0, 5, IRQS_OFF, Event::Console);
        let story = match between {
            Some(event) => story.then(5_000, 0, 5, THREAD, event),
            None => story,
        };
        story
            .then(80_000, 0, 5, IRQS_OFF, Event::Wakeup { pid: 4, cpu: 0 })
            .timer(81_000, 5)
            .target(85_000, 5, 120)
            .culprit()
            .0
    };
    assert_eq!(told(None), Cause::Console);
    assert_eq!(told(Some(Event::Console)), Cause::Console, "the next line");
    assert_eq!(told(Some(Event::Wakeup { pid: 9, cpu: 0 })), Cause::InterruptsOff);
}

#[test]
fn a_cpu_that_is_taken_off_was_stopped_though_nothing_more_is_recorded_there() {
    let stopper = |pid| switch((5, 120, 0), (pid, -1));
    let story = Story::new(5, 120)
        .then(10, 0, 5, THREAD, stopper(STOPPER))
        .then(20, 1, 5, THREAD, stopper(STOPPER + 1))
        // On again: the idle task, and no record of how the stopper left.
        .then(84_000, 1, 0, THREAD, Event::Idle { state: None })
        .timer(80_000, STOPPER)
        .target(85_000, STOPPER, -1);
    assert_eq!(story.culprit(), named(Cause::StopMachine, "migration/0-20"));
}
