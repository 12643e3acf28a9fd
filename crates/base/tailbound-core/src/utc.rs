// SPDX-License-Identifier: MIT OR Apache-2.0
//! Points of time in UTC: to RFC 3339, and from the dates that other tools write.
//!
//! Units: s since 1970. Source: RFC 2822 §3.3, RFC 3339 §5.6; the civil
//! calendar arithmetic is that of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".

/// `Sat, 21 Nov 2026 18:58:56 +0000` as s since 1970.
#[must_use]
pub fn from_rfc2822(text: &str) -> Option<i64> {
    let text = text.split_once(',').map_or(text, |(_, rest)| rest);
    let mut words = text.split_whitespace();
    let day = words.next()?.parse().ok()?;
    let name = words.next()?;
    let months =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = i64::try_from(months.iter().position(|m| *m == name)?).ok()?.checked_add(1)?;
    let year = words.next()?.parse().ok()?;
    let local = at(year, month, day, words.next()?)?;
    let zone: i64 = words.next()?.parse().ok()?;
    if zone.unsigned_abs() > 1459 {
        return None;
    }
    let offset = (zone / 100).checked_mul(3600)?.checked_add((zone % 100).checked_mul(60)?)?;
    local.checked_sub(offset)
}

/// `2026-11-21T19:06:40Z` (or with a fraction) as s since 1970, taken as UTC.
#[must_use]
pub fn from_rfc3339(text: &str) -> Option<i64> {
    from_date_time(text.get(..10)?, text.get(11..19)?)
}

/// `2026-11-21` and `19:06:40` (or with a fraction) as s since 1970, taken as UTC.
#[must_use]
pub fn from_date_time(date: &str, time: &str) -> Option<i64> {
    let mut parts = date.trim().splitn(3, '-').map(|p| p.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    at(year, month, day, time.trim().split('.').next()?)
}

/// s since 1970 as `2026-11-21T18:58:56Z`.
#[must_use]
#[cfg_attr(
    not(test),
    expect(clippy::arithmetic_side_effects, reason = "days of any i64 of seconds leave room")
)]
pub fn rfc3339(s: i64) -> String {
    let (days, of_day) = (s.div_euclid(86_400), s.rem_euclid(86_400));
    let z = days + 719_468;
    let (era, doe) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    let year = yoe + era * 400 + i64::from(month <= 2);
    let (h, m, sec) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{sec:02}Z")
}

/// ns since 1970 as `2026-11-21T18:58:56Z`.
#[must_use]
pub fn from_ns(ns: i64) -> String {
    rfc3339(ns.div_euclid(1_000_000_000))
}

/// ns since 1970 as `2026-11-21 18:58:56.123456`, whole µs.
#[must_use]
pub fn with_us(ns: i64) -> String {
    let (s, rest) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    let text = rfc3339(s).replace('T', " ");
    format!("{}.{:06}", text.trim_end_matches('Z'), rest / 1000)
}

#[cfg_attr(
    not(test),
    expect(clippy::arithmetic_side_effects, reason = "years up to 9999: checked first")
)]
fn at(year: i64, month: i64, day: i64, clock: &str) -> Option<i64> {
    let ok = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let of_day = hms(clock).filter(|s| ok && *s < 86_401)?;
    let y = if month <= 2 { year - 1 } else { year };
    let (era, yoe) = (y.div_euclid(400), y.rem_euclid(400));
    let doy = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    Some((era * 146_097 + doe - 719_468) * 86_400 + of_day)
}

/// `hh:mm:ss` as s.
#[must_use]
#[cfg_attr(
    not(test),
    expect(clippy::arithmetic_side_effects, reason = "3,600 times a u32 is no i64's limit")
)]
pub fn hms(text: &str) -> Option<i64> {
    let mut parts = text.trim().splitn(3, ':').map(|p| p.parse::<u32>().ok());
    let (h, m, s) = (parts.next()??, parts.next()??, parts.next()??);
    Some(i64::from(h) * 3600 + i64::from(m) * 60 + i64::from(s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_come_out_in_utc() {
        let utc = |t| from_rfc2822(t).map(rfc3339);
        let want = Some("2026-11-21T18:58:56Z".to_owned());
        assert_eq!(utc("Sat, 21 Nov 2026 18:58:56 +0000"), want);
        assert_eq!(utc("Sat, 21 Nov 2026 20:28:56 +0130"), want);
        assert_eq!(
            from_date_time("2024-02-29", "23:59:59.123").map(rfc3339),
            Some("2024-02-29T23:59:59Z".into())
        );
        assert_eq!(with_us(1_795_287_536_123_456_789), "2026-11-21 18:58:56.123456");
        for bad in
            ["", "Sat, 21 Nov", "x", "Sat, 21 Nov 2026 18:58:56 +9999999", "1 Foo 2026 1:1:1 +0"]
        {
            assert_eq!(from_rfc2822(bad), None, "{bad}");
        }
    }
}
