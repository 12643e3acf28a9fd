// SPDX-License-Identifier: MIT OR Apache-2.0
//! No single line of a run file can be taken out, doubled or moved without being told of.
//!
//! Also compiled by the end-to-end tests of `tailbound`, for the files of all probes.
//! A file with a digest tells every change, to the byte. A file without one (of an earlier version)
//! tells every line taken out or doubled by its count; of two lines that change places it tells
//! those that a record's time or place contradicts, and the others are harmless: the same records,
//! in another order than they came in. Only the text of a finding that was reported twice may then
//! be the earlier one's; its impact is the same.

use tailbound_core::Run;
use tailbound_core::finding::Impact;
use tailbound_core::record::Line;
use tailbound_core::runfile::{Seal, read_run, read_run_checked};

/// Files with more lines are changed at this many places only.
const PLACES: usize = 40;

/// Holds for any whole run file of Tailbound's writer.
pub(crate) fn every_change_is_noticed(name: &str, file: &[u8]) {
    let (run, integrity) = read_run_checked(file, &[]).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(integrity.seal, Seal::Whole, "{name}");
    assert_eq!(of_the_file(&run), Vec::<String>::new(), "{name}: as it was written");
    let lines: Vec<&[u8]> = file.split_inclusive(|b| *b == b'\n').collect();
    for changed in changes(&lines) {
        assert!(is_noticed(&changed.1), "{name}: {} is not noticed", changed.0);
    }
    let bare = without_digests(&lines);
    let bare: Vec<&[u8]> = bare.iter().map(Vec::as_slice).collect();
    let whole = bare.concat();
    let run = read_run(&whole[..]).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(of_the_file(&run), Vec::<String>::new(), "{name}: without digests");
    for changed in changes(&bare) {
        let harmless = || changed.0.contains("places") && same_records(&run, &changed.1);
        assert!(
            is_noticed(&changed.1) || harmless(),
            "{name}, without digests: {} is not noticed",
            changed.0
        );
    }
}

fn of_the_file(run: &Run) -> Vec<String> {
    run.findings.iter().filter(|f| f.id.starts_with("file-")).map(|f| f.title.clone()).collect()
}

/// Refused, cut off, or a finding that forbids "met".
fn is_noticed(file: &[u8]) -> bool {
    let Ok(run) = read_run(file) else { return true };
    let weighty = |impact| matches!(impact, Impact::Doubt | Impact::Unfit);
    let found = run.findings.iter().any(|f| f.id.starts_with("file-") && weighty(f.impact));
    // Of a measurement known to be whole only benchmarks, or the last line itself, can be missing.
    let told = run.findings.iter().any(|f| f.id == "file-cut-after-verdict");
    found || told || run.end.is_none()
}

/// The same records, whatever their order, and of findings the same ids and impacts.
fn same_records(run: &Run, changed: &[u8]) -> bool {
    let in_short = |line: Line| match line {
        Line::Finding(f) => format!("finding {} {}", f.id, f.impact),
        other => serde_json::to_string(&other).unwrap_or_default(),
    };
    let sorted = |run: &Run| {
        let mut all: Vec<String> = run.lines().map(in_short).collect();
        all.sort_unstable();
        all
    };
    read_run(changed).is_ok_and(|r| r.end == run.end && sorted(&r) == sorted(run))
}

/// The file as a version without digests wrote it.
fn without_digests(lines: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = Vec::new();
    for line in lines {
        if line.starts_with(b"{\"type\":\"digest\"") {
            continue;
        }
        if !line.starts_with(b"{\"type\":\"end\"") {
            out.push(line.to_vec());
            continue;
        }
        let mut end: serde_json::Value = serde_json::from_slice(line).expect("a last line");
        let end = end.as_object_mut().expect("an object");
        end.remove("sha256");
        end.insert("lines".to_owned(), out.len().into());
        out.push(format!("{}\n", serde_json::to_string(end).expect("JSON")).into_bytes());
    }
    out
}

/// Every single line taken out, doubled, and in the place of its neighbour and of a far one.
fn changes<'a>(lines: &'a [&'a [u8]]) -> impl Iterator<Item = (String, Vec<u8>)> + 'a {
    let step = lines.len().div_ceil(PLACES).max(1);
    // The begin and the end of a file are where its order says most.
    let near_an_edge = move |i: usize| i < 4 || i + 8 > lines.len();
    (0..lines.len()).filter(move |i| i % step == 0 || near_an_edge(*i)).flat_map(move |i| {
        let mut out = Vec::new();
        let mut taken = lines.to_vec();
        taken.remove(i);
        out.push((format!("line {} taken out", i + 1), taken.concat()));
        let mut doubled = lines.to_vec();
        doubled.insert(i, lines[i]);
        out.push((format!("line {} doubled", i + 1), doubled.concat()));
        for j in [i + 1, (i + lines.len() / 2) % lines.len()] {
            if j < lines.len() && j != i && lines[i] != lines[j] {
                let mut swapped = lines.to_vec();
                swapped.swap(i, j);
                out.push((format!("places of lines {} and {}", i + 1, j + 1), swapped.concat()));
            }
        }
        out
    })
}
