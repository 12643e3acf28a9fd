-- SPDX-License-Identifier: MIT OR Apache-2.0
-- Ten questions to a store. Each is one `tailbound store query`, and runs on SQLite and on PostgreSQL.
-- Durations are in ns; `/ 1000` makes µs of them. Tables: docs/store.md.

-- How late was each machine at worst, with which kernel?
SELECT system.name, kernel.release, COUNT(*) AS runs, SUM(run.activations) AS activations, MAX(run.max_ns) AS max_ns
FROM run JOIN system ON system.id = run.system JOIN kernel ON kernel.id = run.kernel
GROUP BY system.name, kernel.release ORDER BY max_ns DESC;

-- How did the worst case of each month develop?
SELECT system.name, substr(run.started, 1, 7) AS month, COUNT(*) AS runs, MAX(run.max_ns) AS max_ns
FROM run JOIN system ON system.id = run.system
GROUP BY system.name, substr(run.started, 1, 7) ORDER BY system.name, month;

-- Which runs were not met, or could not be judged, and why?
SELECT substr(run.id, 1, 12) AS run, run.started, system.name, run.outcome, run.reasons, run.max_ns, run.deadline_ns
FROM run JOIN system ON system.id = run.system
WHERE run.outcome <> 'measured' AND run.outcome <> 'met' ORDER BY run.started DESC;

-- Which load makes it latest?
SELECT workload.loads, COUNT(*) AS runs, MIN(run.p9999_ns) AS best_p9999_ns, MAX(run.p9999_ns) AS worst_p9999_ns, MAX(run.max_ns) AS max_ns
FROM run JOIN workload ON workload.id = run.workload
GROUP BY workload.loads ORDER BY max_ns DESC;

-- Under the same conditions, what do two kernels differ by?
SELECT run.system, run.workload, old.release AS kernel_a, new.release AS kernel_b, MAX(run.max_ns) AS max_a_ns, MAX(other.max_ns) AS max_b_ns
FROM run JOIN run AS other ON other.system = run.system AND other.workload = run.workload
JOIN kernel AS old ON old.id = run.kernel JOIN kernel AS new ON new.id = other.kernel
WHERE old.release < new.release
GROUP BY run.system, run.workload, old.release, new.release ORDER BY old.release, new.release;

-- Which CPU of a machine is the latest?
SELECT system.name, histogram.cpu, histogram.context, SUM(histogram.n) AS activations, MAX(histogram.max_ns) AS max_ns
FROM histogram JOIN run ON run.id = histogram.run JOIN system ON system.id = run.system
GROUP BY system.name, histogram.cpu, histogram.context ORDER BY max_ns DESC;

-- Who made it late most often (runs with `--blame`)?
SELECT cause, who, COUNT(*) AS runs, SUM(wakeups) AS wakeups, MAX(longest_ns) AS longest_ns
FROM culprit GROUP BY cause, who ORDER BY longest_ns DESC;

-- What is most often wrong with the machines?
SELECT finding.id, finding.impact, COUNT(*) AS runs, MAX(run.started) AS last_seen
FROM finding JOIN run ON run.id = finding.run
GROUP BY finding.id, finding.impact ORDER BY runs DESC, finding.id;

-- For how long was each machine measured?
SELECT system.name, MIN(run.started) AS since, MAX(run.started) AS until, SUM(run.measured_ns) / 3.6e12 AS hours
FROM run JOIN system ON system.id = run.system GROUP BY system.name ORDER BY hours DESC;

-- What did people write?
SELECT annotation.at, annotation.author, annotation.message, system.name, run.max_ns
FROM annotation JOIN run ON run.id = annotation.run JOIN system ON system.id = run.system ORDER BY annotation.at DESC;
