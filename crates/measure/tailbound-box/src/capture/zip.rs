// SPDX-License-Identifier: MIT OR Apache-2.0
//! The members of a zip archive in the order in which they stand, without the directory at its end: so a stream can be
//! read, and an archive that was cut off.
//!
//! Units: bytes. Source: APPNOTE.TXT 6.3, sections 4.3 and 4.5. Stored and deflated members; their checksums are
//! compared. Memory: 32 KiB and the window of deflate.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use crate::CaptureError;

const LOCAL_HEADER: u32 = 0x0403_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;
/// What stands behind the last member: its directory.
const BEHIND_MEMBERS: [u32; 4] = [0x0201_4b50, 0x0605_4b50, 0x0606_4b50, 0x0806_4b50];
const HEADER_BYTES: usize = 30;
/// Unpacked at once.
const PIECE_BYTES: usize = 32 << 10;
/// A size that stands elsewhere.
const ELSEWHERE: u32 = u32::MAX;

/// What comes next in an archive.
#[derive(Debug)]
pub(crate) enum ArchivePart<'a> {
    /// A member begins; its name.
    Begin(String),
    /// Bytes of it.
    Bytes(&'a [u8]),
    /// It ends, and is as it was packed.
    End,
    /// More bytes are needed, or the archive is over.
    Nothing,
}

#[derive(Debug)]
enum Place {
    Header,
    Data(Member),
    Descriptor(Member),
    Behind,
}

#[derive(Debug)]
struct Member {
    unpacker: Option<Box<Decompress>>,
    /// Packed bytes to come, where the header says how many there are.
    left: Option<u64>,
    crc_stated: Option<u32>,
    crc: Crc,
    long_sizes: bool,
    begins_at: u64,
}

/// An archive while it is read.
#[derive(Debug)]
pub(crate) struct Archive {
    place: Place,
    at: u64,
    piece: Vec<u8>,
}

impl Archive {
    pub(crate) fn new() -> Self {
        Self { place: Place::Header, at: 0, piece: vec![0; PIECE_BYTES] }
    }

    /// Where its reading is.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Were all members there?
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.place, Place::Behind)
    }

    /// The next part of `bytes`, and how many of them are done with.
    pub(crate) fn next<'a>(
        &'a mut self,
        bytes: &'a [u8],
    ) -> Result<(usize, ArchivePart<'a>), CaptureError> {
        match std::mem::replace(&mut self.place, Place::Behind) {
            Place::Header => self.header(bytes),
            Place::Data(member) => self.data(member, bytes),
            Place::Descriptor(member) => self.descriptor(member, bytes),
            Place::Behind => {
                self.at += bytes.len() as u64;
                Ok((bytes.len(), ArchivePart::Nothing))
            }
        }
    }

    fn wait<'a>(&mut self, place: Place) -> (usize, ArchivePart<'a>) {
        self.place = place;
        (0, ArchivePart::Nothing)
    }

    fn header<'a>(&mut self, bytes: &[u8]) -> Result<(usize, ArchivePart<'a>), CaptureError> {
        let Some(signature) = u32_at(bytes, 0) else { return Ok(self.wait(Place::Header)) };
        if BEHIND_MEMBERS.contains(&signature) {
            self.at += bytes.len() as u64;
            return Ok((bytes.len(), ArchivePart::Nothing));
        }
        let wrong = |at: u64, reason: &str| Err(CaptureError::byte(at, reason));
        if signature != LOCAL_HEADER {
            return wrong(self.at, "no member of a zip archive begins here: the file is damaged");
        }
        let Some(fixed) = bytes.get(..HEADER_BYTES) else { return Ok(self.wait(Place::Header)) };
        let half = |at: usize| usize::from(u16_at(fixed, at));
        let length = HEADER_BYTES + half(26) + half(28);
        let Some(whole) = bytes.get(..length) else { return Ok(self.wait(Place::Header)) };
        let (name, extra) = whole.get(HEADER_BYTES..).unwrap_or_default().split_at(half(26));
        let flags = u16_at(fixed, 6);
        if flags & 1 != 0 {
            return wrong(self.at, "the archive is encrypted: decrypt it first");
        }
        let unpacker = match u16_at(fixed, 8) {
            0 => None,
            8 => Some(Box::new(Decompress::new(false))),
            _ => {
                return wrong(
                    self.at,
                    "packed otherwise than by deflate: write it anew with `sigrok-cli -i FILE -o NEW.sr`",
                );
            }
        };
        let [crc, packed] = [14, 18].map(|at| u32_at(fixed, at).unwrap_or(0));
        let long = long_sizes(extra);
        // Bit 3: sizes and checksum come behind the data.
        let behind = flags & 8 != 0;
        let left = match (behind, packed, long) {
            (true, ..) => None,
            (false, ELSEWHERE, Some(packed)) => Some(packed),
            (false, packed, _) => Some(u64::from(packed)),
        };
        if left.is_none() && unpacker.is_none() {
            return wrong(
                self.at,
                "stored without its length: write it anew with `sigrok-cli -i FILE -o NEW.sr`",
            );
        }
        self.at += length as u64;
        self.place = Place::Data(Member {
            unpacker,
            left,
            crc_stated: (!behind).then_some(crc),
            crc: Crc::new(),
            long_sizes: long.is_some(),
            begins_at: self.at,
        });
        Ok((length, ArchivePart::Begin(String::from_utf8_lossy(name).into_owned())))
    }

    fn data<'a>(
        &'a mut self,
        mut member: Member,
        bytes: &'a [u8],
    ) -> Result<(usize, ArchivePart<'a>), CaptureError> {
        let most =
            member.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let input = bytes.get(..bytes.len().min(most)).unwrap_or_default();
        let Some(unpacker) = &mut member.unpacker else {
            if member.left == Some(0) {
                return self.end(member, 0);
            }
            let piece = input.get(..input.len().min(PIECE_BYTES)).unwrap_or_default();
            member.crc.update(piece);
            member.left = member.left.map(|left| left - piece.len() as u64);
            self.at += piece.len() as u64;
            self.place = Place::Data(member);
            let part =
                if piece.is_empty() { ArchivePart::Nothing } else { ArchivePart::Bytes(piece) };
            return Ok((piece.len(), part));
        };
        let (before_in, before_out) = (unpacker.total_in(), unpacker.total_out());
        let status = unpacker
            .decompress(input, &mut self.piece, FlushDecompress::None)
            .map_err(|_| CaptureError::byte(self.at, "what is packed here is damaged"))?;
        let used = usize::try_from(unpacker.total_in() - before_in).unwrap_or(0);
        let made = usize::try_from(unpacker.total_out() - before_out).unwrap_or(0);
        self.at += used as u64;
        member.left = member.left.map(|left| left - used as u64);
        if made == 0 && status == Status::StreamEnd {
            let unread = member.left.filter(|left| *left > 0);
            if unread.is_some() {
                return Err(CaptureError::byte(self.at, "bytes stand behind what is packed here"));
            }
            return self.end(member, used);
        }
        if made == 0 && used == 0 && member.left == Some(0) {
            return Err(CaptureError::byte(self.at, "what is packed here has no end"));
        }
        let made = self.piece.get(..made).unwrap_or_default();
        member.crc.update(made);
        self.place = Place::Data(member);
        Ok((used, if made.is_empty() { ArchivePart::Nothing } else { ArchivePart::Bytes(made) }))
    }

    fn end<'a>(
        &mut self,
        member: Member,
        used: usize,
    ) -> Result<(usize, ArchivePart<'a>), CaptureError> {
        let Some(stated) = member.crc_stated else {
            self.place = Place::Descriptor(member);
            return Ok((used, ArchivePart::Bytes(&[])));
        };
        self.place = Place::Header;
        agree(&member, stated)?;
        Ok((used, ArchivePart::End))
    }

    fn descriptor<'a>(
        &mut self,
        member: Member,
        bytes: &[u8],
    ) -> Result<(usize, ArchivePart<'a>), CaptureError> {
        let Some(first) = u32_at(bytes, 0) else { return Ok(self.wait(Place::Descriptor(member))) };
        let signature = if first == DESCRIPTOR { 4 } else { 0 };
        let length = signature + if member.long_sizes { 20 } else { 12 };
        let Some(whole) = bytes.get(..length) else {
            return Ok(self.wait(Place::Descriptor(member)));
        };
        agree(&member, u32_at(whole, signature).unwrap_or(0))?;
        self.at += length as u64;
        self.place = Place::Header;
        Ok((length, ArchivePart::End))
    }
}

fn agree(member: &Member, stated: u32) -> Result<(), CaptureError> {
    if member.crc.sum() == stated {
        return Ok(());
    }
    Err(CaptureError::byte(
        member.begins_at,
        "the checksum of the member that begins here is not that of its data: the file is damaged",
    ))
}

/// The packed size of the extra field of long sizes, whose first is the plain one.
fn long_sizes(mut extra: &[u8]) -> Option<u64> {
    while let Some((head, rest)) = extra.split_at_checked(4) {
        let length = usize::from(u16_at(head, 2));
        let (body, next) = rest.split_at_checked(length)?;
        if u16_at(head, 0) == 1 {
            let packed = body.get(8..16).or(body.get(..8))?;
            return packed.try_into().ok().map(u64::from_le_bytes);
        }
        extra = next;
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let two = bytes.get(at..at + 2).and_then(|two| two.try_into().ok());
    two.map_or(0, u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}
