// SPDX-License-Identifier: MIT OR Apache-2.0
//! The binary format, in which a histogram is a classic and a native one at once.
//!
//! Units: seconds. Native buckets have the growth 2^(1/4) and end at powers of it in seconds; the classes that are counted
//! have ends in ns, so they are others. A class goes as a whole into the bucket that has its upper end: no wait is shown in a
//! lower bucket than its own, and at most two higher.
//! Source: prometheus/client_model, io/prometheus/client/metrics.proto; Protocol Buffers, "Encoding".

use std::collections::BTreeMap;

use tailbound_core::protobuf::Message;

use super::{Family, Kind, Metric, Value, buckets, seconds};
use crate::window::Series;

/// 2^SCHEMA buckets for each power of two.
const SCHEMA: i32 = 2;
/// Values up to this are zero: none of ours is.
const ZERO_S: f64 = 2.938_735_877_055_719e-39;

/// The native bucket that has `upper_ns`: the first whose end, 2^(i/4) s, is not below it.
fn bucket(upper_ns: u64) -> i32 {
    let place = seconds(upper_ns).log2() * f64::from(1 << SCHEMA);
    // Between -144 and 256 for every number of ns.
    place.ceil() as i32
}

fn native(to: Message, series: &Series) -> Message {
    let mut counts: BTreeMap<i32, u64> = BTreeMap::new();
    for (upper_ns, n) in &series.classes {
        let count = counts.entry(bucket(*upper_ns)).or_default();
        *count = count.saturating_add(*n);
    }
    let mut to = to.sint(5, i64::from(SCHEMA)).double(6, ZERO_S).uint(7, 0);
    // Neighbours are one span; the first begins at its place, the others so far behind the one before.
    let mut spans: Vec<(i32, u64)> = Vec::new();
    let mut next: Option<i32> = None;
    for place in counts.keys() {
        match spans.last_mut() {
            Some(span) if next == Some(*place) => span.1 = span.1.saturating_add(1),
            _ => spans.push((place.saturating_sub(next.unwrap_or(0)), 1)),
        }
        next = Some(place.saturating_add(1));
    }
    if spans.is_empty() {
        // Without a span it would not be known as a native one.
        spans.push((0, 0));
    }
    for (offset, length) in spans {
        let span = Message::default().sint(1, i64::from(offset)).uint(2, length);
        to = to.message(12, &span);
    }
    let mut before = 0i64;
    for n in counts.values() {
        let n = i64::try_from(*n).unwrap_or(i64::MAX);
        to = to.sint(13, n.saturating_sub(before));
        before = n;
    }
    to
}

fn histogram(series: &Series) -> Message {
    let mut to = Message::default().uint(1, series.n).double(2, seconds(series.sum_ns));
    for (end, n) in buckets(series).chain([(f64::INFINITY, series.n)]) {
        to = to.message(3, &Message::default().uint(1, n).double(2, end));
    }
    native(to, series)
}

fn metric(of: &Metric<'_>, kind: Kind) -> Message {
    let mut to = Message::default();
    if let Some((comm, policy)) = of.whose {
        for (name, value) in [("comm", comm.as_str()), ("policy", &policy.to_string())] {
            to = to.message(1, &Message::default().text(1, name).text(2, value));
        }
    }
    match &of.value {
        Value::Number(value) => {
            let field = if kind == Kind::Counter { 3 } else { 2 };
            to.message(field, &Message::default().double(1, *value))
        }
        Value::Histogram(series) => to.message(7, &histogram(series)),
    }
}

/// The page: each family behind its length.
pub(super) fn page(families: &[Family<'_>]) -> Vec<u8> {
    let mut out = Message::default();
    for of in families.iter().filter(|f| !f.metrics.is_empty()) {
        let kind = match of.kind {
            Kind::Counter => 0,
            Kind::Gauge => 1,
            Kind::Histogram => 4,
        };
        let mut family = Message::default().text(1, of.name).text(2, of.help).uint(3, kind);
        for one in &of.metrics {
            family = family.message(4, &metric(one, of.kind));
        }
        out = out.delimited(&family);
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Metrics, page};
    use super::*;
    use crate::window::Policy;

    /// Numbers by their field; what is behind a length by its bytes.
    #[derive(Debug)]
    enum Field {
        Number(u64),
        Double(f64),
        Bytes(Vec<u8>),
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut n, mut shift) = (0, 0);
        loop {
            let b = bytes[0];
            *bytes = &bytes[1..];
            n |= u64::from(b & 0x7f) << shift;
            shift += 7;
            if b < 0x80 {
                return n;
            }
        }
    }

    fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
        let mut out = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let take = |bytes: &mut &[u8], n: usize| {
                let (first, rest) = bytes.split_at(n);
                *bytes = rest;
                first.to_vec()
            };
            let value = match key & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => Field::Double(f64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
                2 => {
                    let n = usize::try_from(varint(&mut bytes)).unwrap();
                    Field::Bytes(take(&mut bytes, n))
                }
                wire => panic!("{wire}"),
            };
            out.push((key >> 3, value));
        }
        out
    }

    fn inner(of: &[(u64, Field)], field: u64) -> Vec<Vec<(u64, Field)>> {
        let these = of.iter().filter(|(f, _)| *f == field);
        these
            .map(|(_, v)| match v {
                Field::Bytes(b) => fields(b),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn numbers(of: &[(u64, Field)], field: u64) -> Vec<u64> {
        let these = of.iter().filter(|(f, _)| *f == field);
        these.map(|(_, v)| if let Field::Number(n) = v { *n } else { panic!("{v:?}") }).collect()
    }

    fn signed(n: u64) -> i64 {
        (n >> 1).cast_signed() ^ -(n & 1).cast_signed()
    }

    #[test]
    fn spans_and_deltas_give_back_the_counts() {
        let classes = BTreeMap::from([(1279, 5), (1023, 2), (4_294_967_295, 1)]);
        let series = Series { n: 8, sum_ns: 5_000_000_000, classes, ..Series::default() };
        let whose = ("control".to_owned(), Policy::of(1, 80));
        let told =
            Metrics { series: BTreeMap::from([(whose, series.clone())]), ..Metrics::default() };
        let bytes = page(&told, Format::Protobuf);
        let mut rest = bytes.as_slice();
        let mut families = Vec::new();
        while !rest.is_empty() {
            let n = usize::try_from(varint(&mut rest)).unwrap();
            let (first, behind) = rest.split_at(n);
            families.push(fields(first));
            rest = behind;
        }
        assert_eq!(families.len(), 10);
        assert_eq!(numbers(&families[0], 3), [4]);
        let metrics = inner(&families[0], 4);
        let h = inner(&metrics[0], 7).remove(0);
        assert_eq!((numbers(&h, 1), numbers(&h, 7)), (vec![8], vec![0]));
        assert!(h.iter().any(|(f, v)| *f == 2 && matches!(v, Field::Double(s) if *s == 5.0)));
        assert_eq!(inner(&h, 3).len(), 22, "classic ones too");
        assert_eq!(signed(numbers(&h, 5)[0]), 2);
        let (mut found, mut place, mut count) = (BTreeMap::new(), 0, 0);
        let mut deltas = numbers(&h, 13).into_iter().map(signed);
        for span in inner(&h, 12) {
            place += signed(numbers(&span, 1)[0]);
            for _ in 0..numbers(&span, 2)[0] {
                count += deltas.next().unwrap();
                found.insert(i32::try_from(place).unwrap(), count.cast_unsigned());
                place += 1;
            }
        }
        assert_eq!(deltas.next(), None);
        let want: BTreeMap<i32, u64> =
            series.classes.iter().map(|(upper, n)| (bucket(*upper), *n)).collect();
        assert_eq!(found, want);
    }

    #[test]
    fn each_bucket_has_the_upper_end_of_its_classes() {
        for class in 0..168 {
            let upper = tailbound_trace::bpf::classes::upper(class);
            let i = f64::from(bucket(upper));
            let end = |i: f64| (i / 4.0).exp2();
            let s = seconds(upper);
            assert!(s <= end(i) * (1.0 + 1e-12) && s > end(i - 1.0) * (1.0 - 1e-12), "{upper}");
        }
    }
}
