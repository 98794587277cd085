//! Decoding of frames, in the encoding that their `Encode` has, with little code.
//!
//! What `minicbor` derives for decoding is fast and complete, and makes a page's module 21.6 KB
//! (gzip) larger: 93.4 KB against 71.8 KB. Here a reader remembers that it failed and goes on
//! with empty values, so that reading a field is one call and no branch; whoever reads a whole
//! frame asks at its end. Only definite lengths are read, which is what is written.

mod frames;
#[cfg(test)]
mod tests;

/// Something that can be read from its encoding.
pub trait Compact: Sized {
    /// Reads a value. After a failure, before or in this call, the value means nothing.
    fn read(input: &mut Reader<'_>) -> Self;

    /// The value of a field that an older build did not write.
    fn absent(input: &mut Reader<'_>) -> Self {
        input.fail();
        Self::read(input)
    }
}

/// Kinds of encoded items.
mod major {
    pub(super) const UNSIGNED: u8 = 0;
    pub(super) const NEGATIVE: u8 = 1;
    pub(super) const BYTES: u8 = 2;
    pub(super) const TEXT: u8 = 3;
    pub(super) const ARRAY: u8 = 4;
    pub(super) const MAP: u8 = 5;
    pub(super) const TAG: u8 = 6;
    pub(super) const SIMPLE: u8 = 7;
}

const FALSE: u64 = 20;
const TRUE: u64 = 21;
const NULL: u8 = 0xf6;

/// Reads items one after the other, and remembers when one was not what it should be.
pub struct Reader<'a> {
    rest: &'a [u8],
    failed: bool,
}

impl<'a> Reader<'a> {
    /// A reader of these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, failed: false }
    }

    /// What has not been read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether anything was not what it should be.
    #[must_use]
    pub const fn failed(&self) -> bool {
        self.failed
    }

    /// Makes all that follows mean nothing.
    #[inline(never)]
    pub fn fail(&mut self) {
        self.failed = true;
        self.rest = &[];
    }

    #[inline(never)]
    fn byte(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((byte, rest)) => {
                self.rest = rest;
                *byte
            }
            None => {
                self.fail();
                0
            }
        }
    }

    /// The kind of the next item, and its number or length.
    #[inline(never)]
    fn head(&mut self) -> (u8, u64) {
        let first = self.byte();
        let width = match first & 31 {
            small @ 0..=23 => return (first >> 5, small.into()),
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            _ => {
                self.fail();
                0
            }
        };
        let value = (0..width).fold(0, |value, _| value << 8 | u64::from(self.byte()));
        (first >> 5, value)
    }

    #[inline(never)]
    fn expect(&mut self, wanted: u8) -> u64 {
        let (found, value) = self.head();
        if found != wanted {
            self.fail();
        }
        if self.failed { 0 } else { value }
    }

    /// The length of the array that follows.
    pub fn array(&mut self) -> u64 {
        self.expect(major::ARRAY)
    }

    /// An unsigned number up to `max`.
    #[inline(never)]
    pub fn unsigned(&mut self, max: u64) -> u64 {
        let value = self.expect(major::UNSIGNED);
        if value > max {
            self.fail();
            return 0;
        }
        value
    }

    #[inline(never)]
    fn signed(&mut self) -> i64 {
        let (kind, value) = self.head();
        match (kind, i64::try_from(value)) {
            (major::UNSIGNED, Ok(value)) => value,
            (major::NEGATIVE, Ok(value)) => -1 - value,
            _ => {
                self.fail();
                0
            }
        }
    }

    /// A text.
    #[inline(never)]
    pub fn text(&mut self) -> &'a str {
        let length = self.expect(major::TEXT);
        let taken =
            usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let text = taken.and_then(|(text, rest)| Some((core::str::from_utf8(text).ok()?, rest)));
        match text {
            Some((text, rest)) => {
                self.rest = rest;
                text
            }
            None => {
                self.fail();
                ""
            }
        }
    }

    /// One field of an array that has `left` more.
    pub(crate) fn field<T: Compact>(&mut self, left: &mut u64) -> T {
        if *left == 0 {
            return T::absent(self);
        }
        *left -= 1;
        T::read(self)
    }

    /// Passes over the fields that a newer build has appended.
    #[inline(never)]
    pub(crate) fn pass(&mut self, left: u64) {
        for _ in 0..left {
            if self.failed {
                return;
            }
            self.skip();
        }
    }

    /// Passes over one item, however deep.
    #[inline(never)]
    pub fn skip(&mut self) {
        let mut items = 1_u64;
        while items > 0 && !self.failed {
            items -= 1;
            let (kind, value) = self.head();
            match kind {
                major::BYTES | major::TEXT => {
                    let rest = usize::try_from(value).ok().and_then(|n| self.rest.get(n..));
                    match rest {
                        Some(rest) => self.rest = rest,
                        None => self.fail(),
                    }
                }
                major::ARRAY => items = items.saturating_add(value),
                major::MAP => items = items.saturating_add(value.saturating_mul(2)),
                major::TAG => items = items.saturating_add(1),
                _ => {}
            }
        }
    }
}

impl Compact for bool {
    fn read(input: &mut Reader<'_>) -> Self {
        match input.expect(major::SIMPLE) {
            FALSE => false,
            TRUE => true,
            _ => {
                input.fail();
                false
            }
        }
    }
}

impl Compact for u32 {
    fn read(input: &mut Reader<'_>) -> Self {
        input.unsigned(Self::MAX.into()) as Self
    }
}

impl Compact for u64 {
    fn read(input: &mut Reader<'_>) -> Self {
        input.unsigned(Self::MAX)
    }
}

impl Compact for i64 {
    fn read(input: &mut Reader<'_>) -> Self {
        input.signed()
    }
}

impl Compact for String {
    fn read(input: &mut Reader<'_>) -> Self {
        input.text().to_owned()
    }
}

impl<T: Compact> Compact for Option<T> {
    fn read(input: &mut Reader<'_>) -> Self {
        if input.rest.first() == Some(&NULL) {
            input.byte();
            return None;
        }
        Some(T::read(input))
    }

    fn absent(_: &mut Reader<'_>) -> Self {
        None
    }
}

impl<T: Compact> Compact for Vec<T> {
    fn read(input: &mut Reader<'_>) -> Self {
        // A length is never trusted: every item is at least a byte, and the bytes run out.
        let length = input.array();
        let mut items = Self::new();
        for _ in 0..length {
            let item = T::read(input);
            if input.failed {
                break;
            }
            items.push(item);
        }
        items
    }
}
