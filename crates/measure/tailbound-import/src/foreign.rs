// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that hold no run, known by their first bytes or words, and for each the sentence that helps: what it is, and what to do instead.
//!
//! Only the beginning of a file is looked at. Whatever is a format of a tool comes first, but for sources of programs, which
//! contain what tools print.
//! Not here: outputs of known tools that hold no latencies (`format`). Source: magic numbers as in file(1)'s database; LTTng's CTF 1.8.

/// What a file is that holds no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// A program or library.
    #[error("a binary program (ELF), not a measurement: run it and import what it prints")]
    Program,
    /// A trace of trace-cmd.
    #[error(
        "a trace that trace-cmd recorded: `tailbound blame FILE` says who made its wake-ups late (unpack it first if it is packed)"
    )]
    TraceDat,
    /// What perf recorded.
    #[error(
        "a recording of perf, which is binary: run `perf script -i FILE > FILE.txt`, and `tailbound blame FILE.txt`"
    )]
    PerfData,
    /// A trace of LTTng or another tool in the Common Trace Format.
    #[error(
        "a trace in the Common Trace Format (LTTng), which is binary: run `babeltrace2 FOLDER > FILE.txt`, and `tailbound blame FILE.txt`"
    )]
    Ctf,
    /// Network packets.
    #[error("a capture of network packets, which holds no latencies of wake-ups")]
    Packets,
    /// A packed file that was not unpacked.
    #[error("packed by {0}: unpack it and import what is in it")]
    Packed(&'static str),
    /// Several files in one.
    #[error("an archive ({0}), not a measurement: unpack it and import the files in it")]
    Archive(&'static str),
    /// A document or a picture.
    #[error("{0}, not a measurement: import the text that the tool printed")]
    Document(&'static str),
    /// A database.
    #[error("a database (SQLite); one of tailbound is read by `tailbound store`")]
    Database,
    /// Our report.
    #[error(
        "a report of tailbound: open it in a browser; its run is in the run file (`.tailbound.jsonl`) that was written with it, and that can be imported or shown"
    )]
    OwnReport,
    /// Another page.
    #[error("a web page (HTML): save the text that the tool printed, and import that")]
    Page,
    /// A table that we exported.
    #[error(
        "a table that `tailbound export` wrote, without all that a run needs: use the run file (`.tailbound.jsonl`) that it came from"
    )]
    OwnTable,
    /// An answer of ours in JSON.
    #[error(
        "an answer of tailbound in JSON (`--json`), without all that a run needs: use the run file (`.tailbound.jsonl`) that it came from"
    )]
    OwnAnswer,
    /// What we exported for another program.
    #[error(
        "{0} as `tailbound export` writes it, without all that a run needs: use the run file (`.tailbound.jsonl`) that it came from"
    )]
    OwnExport(&'static str),
    /// What we printed on a terminal.
    #[error(
        "what tailbound printed, without all that a run needs: use the run file (`.tailbound.jsonl`) that it was printed from"
    )]
    OwnScreen,
    /// A campaign.
    #[error(
        "a campaign of tailbound, which says what to measure: `tailbound campaign run FILE` measures it, and the run files it writes can be imported"
    )]
    Campaign,
    /// Another file of settings.
    #[error(
        "a file of settings (TOML), not a measurement; one with options of a run is given to `tailbound run -c FILE`"
    )]
    Settings,
    /// A log of HdrHistogram.
    #[error(
        "a log of HdrHistogram (.hlog), whose histograms are packed: print its percentiles (`HistogramLogProcessor -i FILE`) and import those with --unit; of a run of tailbound use the run file it came from"
    )]
    HdrLog,
    /// Source text of a program.
    #[error(
        "source text of a program, not a measurement: run the program and import what it prints"
    )]
    Source,
    /// A script.
    #[error("a script, not a measurement: run it and import what it prints")]
    Script,
    /// Commands for gnuplot.
    #[error("commands for gnuplot: import the data file that they plot, as the tool wrote it")]
    PlotCommands,
    /// Columns of numbers.
    #[error(
        "columns of numbers without the name of a tool or of their columns (data for gnuplot?): import the file that the tool wrote, or a single column of latencies"
    )]
    Columns,
}

/// By first bytes, at the beginning of a file.
const MAGIC: &[(&[u8], Foreign)] = &[
    (b"\x7fELF", Foreign::Program),
    (b"\x17\x08\x44tracing", Foreign::TraceDat),
    (b"PERFILE2", Foreign::PerfData),
    (b"2ELIFREP", Foreign::PerfData),
    (b"PERFFILE", Foreign::PerfData),
    (b"\xc1\x1f\xfc\xc1", Foreign::Ctf),
    (b"\xc1\xfc\x1f\xc1", Foreign::Ctf),
    (b"\x57\x1d\xd1\x75", Foreign::Ctf),
    (b"\x75\xd1\x1d\x57", Foreign::Ctf),
    (b"/* CTF ", Foreign::Ctf),
    (b"\xd4\xc3\xb2\xa1", Foreign::Packets),
    (b"\xa1\xb2\xc3\xd4", Foreign::Packets),
    (b"\x4d\x3c\xb2\xa1", Foreign::Packets),
    (b"\xa1\xb2\x3c\x4d", Foreign::Packets),
    (b"\x0a\x0d\x0d\x0a", Foreign::Packets),
    (b"\x1f\x8b", Foreign::Packed("gzip")),
    (b"\x28\xb5\x2f\xfd", Foreign::Packed("zstd")),
    (b"\xfd7zXZ\0", Foreign::Packed("xz")),
    (b"BZh", Foreign::Packed("bzip2")),
    (b"\x04\x22\x4d\x18", Foreign::Packed("lz4")),
    (b"PK\x03\x04", Foreign::Archive("zip, or an office document")),
    (b"7z\xbc\xaf\x27\x1c", Foreign::Archive("7-Zip")),
    (b"Rar!\x1a\x07", Foreign::Archive("RAR")),
    (b"070701", Foreign::Archive("cpio")),
    (b"!<arch>\n", Foreign::Archive("ar, as Debian packages are")),
    (b"\xed\xab\xee\xdb", Foreign::Archive("rpm")),
    (b"%PDF-", Foreign::Document("a PDF document")),
    (b"%!PS", Foreign::Document("a PostScript document")),
    (b"{\\rtf", Foreign::Document("an RTF document")),
    (b"\xd0\xcf\x11\xe0", Foreign::Document("an office document")),
    (b"\x89PNG", Foreign::Document("a picture (PNG)")),
    (b"\xff\xd8\xff", Foreign::Document("a picture (JPEG)")),
    (b"GIF8", Foreign::Document("a picture (GIF)")),
    (b"BM\x36", Foreign::Document("a picture (BMP)")),
    (b"SQLite format 3\0", Foreign::Database),
];

/// What the tables begin with that `tailbound export` writes.
const TABLES: [&str; 5] =
    ["thread,cpu,context", "thread,name,", "thread,activation,", "thread,second,", "load,name,"];

/// Where a tar archive has its name.
const TAR: usize = 257;

/// What `head` is, by its first bytes alone.
pub(crate) fn by_magic(head: &[u8]) -> Option<Foreign> {
    if head.get(TAR..).is_some_and(|rest| rest.starts_with(b"ustar")) {
        return Some(Foreign::Archive("a tar file"));
    }
    // WebP has its length between.
    if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        return Some(Foreign::Document("a picture (WebP)"));
    }
    if is_packets(head) {
        return Some(Foreign::OwnExport("a trace for Perfetto (protobuf)"));
    }
    MAGIC.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, foreign)| *foreign)
}

/// Is it a list of Perfetto's packets, each of them a mark, its length and bytes that are no text?
fn is_packets(head: &[u8]) -> bool {
    let mut rest = head;
    for _ in 0..3 {
        let [0x0a, low, more @ ..] = rest else { return false };
        let (length, body) = match more {
            [high, body @ ..] if low & 0x80 != 0 => {
                (usize::from(low & 0x7f) | usize::from(*high) << 7, body)
            }
            body => (usize::from(*low), body),
        };
        let Some((packet, next)) = body.split_at_checked(length) else { return false };
        let control = |b: &u8| *b < 0x09 || (0x0e..0x1b).contains(b);
        if !packet.iter().any(control) {
            return false;
        }
        rest = next;
    }
    true
}

/// What a text that begins with `<` is.
pub(crate) fn by_markup(start: &str) -> Option<Foreign> {
    let lower = start.get(..1024).unwrap_or(start).to_ascii_lowercase();
    if lower.contains("<!doctype html") || lower.contains("<html") {
        let ours = start.contains("<title>Tailbound") || start.contains("Written by Tailbound");
        return Some(if ours { Foreign::OwnReport } else { Foreign::Page });
    }
    if lower.contains("<svg") {
        return Some(Foreign::Document("a picture (SVG)"));
    }
    let junit = lower.contains("<testsuite") && lower.contains("tailbound");
    junit.then_some(Foreign::OwnExport("JUnit XML"))
}

/// What a text that begins with `{` is.
pub(crate) fn by_json(start: &str) -> Option<Foreign> {
    if start.contains("\"tailbound-") {
        return Some(Foreign::OwnAnswer);
    }
    start.contains("\"traceEvents\"").then_some(Foreign::OwnExport("a trace for Perfetto (JSON)"))
}

/// Is it the source of a program? Those of testers contain lines that look like their output.
pub(crate) fn is_source(text: &str) -> bool {
    let begins = |l: &str, word: &str| l.trim_start().starts_with(word);
    let includes = text.lines().filter(|l| begins(l, "#include ") || begins(l, "#define ")).count();
    let python = text.lines().filter(|l| begins(l, "import ") || begins(l, "def ")).count();
    let rust = text.lines().filter(|l| begins(l, "use ") && l.trim_end().ends_with(';')).count();
    includes >= 2 || python >= 2 || rust >= 2
}

/// What a text is that has no line of a tool.
pub(crate) fn by_text(text: &str) -> Option<Foreign> {
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    let first = lines.next()?;
    let any = |test: &dyn Fn(&str) -> bool| text.lines().map(str::trim).any(test);
    if first.starts_with("#[Histogram log format")
        || first.contains("Interval_Compressed_Histogram")
    {
        return Some(Foreign::HdrLog);
    }
    if first.starts_with("KTAP version") {
        return Some(Foreign::OwnExport("KTAP"));
    }
    if any(&|l| l.starts_with("# TYPE tailbound_") || l.starts_with("# HELP tailbound_")) {
        return Some(Foreign::OwnExport("OpenMetrics text"));
    }
    if TABLES.iter().any(|head| first.starts_with(head)) {
        return Some(Foreign::OwnTable);
    }
    let answers = ["Met: ", "Not met: ", "Measured: ", "Undecided: ", "Unfit: "];
    let answer = answers.iter().any(|a| first.starts_with(a));
    if any(&|l| l.starts_with("Run file  ")) || answer && any(&|l| l == "What this run shows") {
        return Some(Foreign::OwnScreen);
    }
    if first.starts_with("#!") {
        return Some(Foreign::Script);
    }
    if any(&|l| l == "[[step]]" || l == "[[system]]" || l == "[[run]]" || l == "[[claim]]") {
        return Some(Foreign::Campaign);
    }
    let table = |l: &str| l.starts_with('[') && l.ends_with(']') && !l.contains(' ');
    let setting = |l: &str| l.split_once(" = ").is_some_and(|(k, _)| !k.contains(' '));
    if any(&table) && text.lines().filter(|l| setting(l.trim())).count() >= 2 {
        return Some(Foreign::Settings);
    }
    let plot = |l: &str| {
        ["plot ", "splot ", "set terminal", "set output", "set xlabel"]
            .iter()
            .any(|p| l.starts_with(p))
    };
    if text.lines().filter(|l| plot(l.trim())).count() >= 2 {
        return Some(Foreign::PlotCommands);
    }
    is_columns(text).then_some(Foreign::Columns)
}

/// Lines of two numbers and more, and of nothing else but comments.
fn is_columns(text: &str) -> bool {
    let mut rows = 0;
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let mut words = line.split([' ', '\t', ',', ';']).filter(|w| !w.is_empty());
        if words.clone().count() < 2 || !words.all(|w| w.parse::<f64>().is_ok()) {
            // The last line of what was looked at may be cut.
            return rows >= 3 && text.trim_end().ends_with(line);
        }
        rows += 1;
    }
    rows >= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell() {
        for (bytes, words) in [
            (&b"\x7fELF\x02\x01"[..], "ELF"),
            (b"\x17\x08\x44tracing6\0", "tailbound blame"),
            (b"PERFILE2\0\0", "perf"),
            (b"\xc1\x1f\xfc\xc1\0", "Common Trace Format"),
            (b"\xd4\xc3\xb2\xa1\x02\0", "network packets"),
            (b"PK\x03\x04", "zip"),
            (b"BZh91AY", "bzip2"),
            (b"%PDF-1.7", "PDF"),
            (b"\x89PNG\r\n", "PNG"),
            (b"SQLite format 3\0", "SQLite"),
        ] {
            let said = by_magic(bytes).map(|f| f.to_string()).unwrap_or_default();
            assert!(said.contains(words), "{words}: {said}");
        }
        let mut tar = vec![b'a'; 600];
        tar.splice(257..262, *b"ustar");
        assert_eq!(by_magic(&tar), Some(Foreign::Archive("a tar file")));
        assert_eq!(by_magic(b"BZ"), None);
    }

    #[test]
    fn numbers_in_columns_are_told_from_words() {
        assert!(is_columns("# a b\n1 2\n3 4.5\n"));
        assert!(is_columns("1,2,3\n4,5,6\n7,8,9\n10,"));
        assert!(!is_columns("1 2\nwords and 3\n"));
        assert!(!is_columns("# nothing\n"));
    }
}
