//! Images that models can be sent: their format and size, read from their first bytes.

/// The most bytes of an image that common servers accept.
pub const MOST_PICTURE_BYTES: u64 = 5 << 20;

/// The most pixels a side that common servers accept.
pub const MOST_PICTURE_SIDE: u32 = 8_000;

/// The media type of an image, by its first bytes.
#[must_use]
pub fn picture_kind(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// The width and height of an image in pixels, as its header says.
#[must_use]
pub fn picture_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let size = match picture_kind(bytes)? {
        "image/png" if bytes.get(12..16)? == b"IHDR" => (big(bytes, 16, 4)?, big(bytes, 20, 4)?),
        "image/jpeg" => jpeg_size(bytes)?,
        "image/gif" => (little(bytes, 6, 2)?, little(bytes, 8, 2)?),
        "image/webp" => webp_size(bytes)?,
        _ => return None,
    };
    (size.0 > 0 && size.1 > 0).then_some(size)
}

/// Walks over the segments of a JPEG to the one that starts the frame.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        match *bytes.get(at + 1)? {
            0xff => at += 1,
            0x01 | 0xd0..=0xd8 => at += 2,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((big(bytes, at + 7, 2)?, big(bytes, at + 5, 2)?));
            }
            _ => at += 2 + big(bytes, at + 2, 2)? as usize,
        }
    }
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1)),
        b"VP8L" => {
            let packed = little(bytes, 21, 4)?;
            Some(((packed & 0x3fff) + 1, (packed >> 14 & 0x3fff) + 1))
        }
        b"VP8 " => Some((little(bytes, 26, 2)? & 0x3fff, little(bytes, 28, 2)? & 0x3fff)),
        _ => None,
    }
}

fn big(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    let part = bytes.get(at..at + len)?;
    Some(part.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
}

fn little(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    let part = bytes.get(at..at + len)?;
    Some(part.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_each_format_is_read_from_its_header() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x02\0\0\0";
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\x01\xe0\x02\x80\x03";
        let gif = b"GIF89a\x80\x02\xe0\x01\0\0\0";
        let extended = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0";
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\xe0\x01";
        let packed = 639_u32 | 479 << 14;
        let lossless = [b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f".as_slice(), &packed.to_le_bytes()];
        for bytes in [&png[..], jpeg, gif, extended, lossy, &lossless.concat()] {
            assert_eq!(picture_size(bytes), Some((640, 480)), "{:?}", picture_kind(bytes));
            for end in 0..bytes.len() {
                let _ = picture_size(&bytes[..end]); // a header that is cut off does not panic
            }
        }
        assert_eq!(picture_size(b"\xff\xd8\xff\xe0\xff\xff"), None);
        assert_eq!(picture_size(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\0\0"), None);
    }
}
