// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which file lies where in a process.
//!
//! Source: proc_pid_maps(5).

/// One mapping of a file that can be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// First address.
    pub start: u64,
    /// The one behind the last.
    pub end: u64,
    /// Where `start` lies in the file.
    pub offset: u64,
    /// The file; `[vdso]` and the like for what is none.
    pub path: String,
}

/// All of them, by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps {
    maps: Vec<Map>,
}

impl Maps {
    /// Reads the text of `/proc/PID/maps`; lines that are not understood are passed over.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.splitn(6, ' ');
            let (range, rights, offset) = (words.next()?, words.next()?, words.next()?);
            let path = words.nth(2).unwrap_or("").trim().to_owned();
            let (start, end) = range.split_once('-')?;
            let number = |hex: &str| u64::from_str_radix(hex, 16).ok();
            let map =
                Map { start: number(start)?, end: number(end)?, offset: number(offset)?, path };
            rights.contains('x').then_some(map)
        };
        let mut maps: Vec<Map> = text.lines().filter_map(line).collect();
        maps.sort_by_key(|m| m.start);
        Self { maps }
    }

    /// The one that an address lies in.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<&Map> {
        let after = self.maps.partition_point(|m| m.start <= address);
        self.maps.get(after.checked_sub(1)?).filter(|m| address < m.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_run_is_found() {
        let maps = Maps::parse(
            "1000-2000 r--p 00000000 fe:00 12   /a b/c\n2000-4000 r-xp 00001000 fe:00 12   /a b/c\n\
             7000-8000 r-xp 00000000 00:00 0    [vdso]\nnothing\n",
        );
        let map = maps.find(0x3fff).expect("text");
        assert_eq!((map.offset, map.path.as_str()), (0x1000, "/a b/c"));
        assert_eq!(maps.find(0x1000), None);
        assert_eq!(maps.find(0x4000), None);
        assert_eq!(maps.find(0x7000).map(|m| m.path.as_str()), Some("[vdso]"));
    }
}
