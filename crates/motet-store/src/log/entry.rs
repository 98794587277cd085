//! A change as it lies in the log.

use minicbor::{Decode, Encode};

/// What a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(index_only)]
#[non_exhaustive]
pub enum Op {
    /// The document was created or replaced.
    #[n(1)]
    Put,
    /// The document was removed.
    #[n(2)]
    Remove,
    /// The document's time had come, and it was removed.
    #[n(3)]
    Expire,
}

/// The stored form, borrowed from the engine. Fields are appended, never renumbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub(crate) struct EntryRecord<'b> {
    #[n(0)]
    pub(crate) op: Op,
    #[n(1)]
    pub(crate) type_id: u32,
    #[b(2)]
    pub(crate) key: &'b str,
    /// The document's version before, 0 if there was none.
    #[n(3)]
    pub(crate) previous: u64,
    #[n(4)]
    pub(crate) time: u64,
    /// The process instance that wrote it.
    #[n(5)]
    pub(crate) origin: u64,
    /// The clock of the first change of its transaction.
    #[n(6)]
    pub(crate) transaction: u64,
    /// Bytes of all entries up to and with this one, since the log began: the size of any stretch
    /// is a subtraction.
    #[n(7)]
    pub(crate) total_bytes: u64,
    /// The value as JSON text, where the log keeps values.
    #[cbor(b(8), with = "minicbor::bytes")]
    pub(crate) json: Option<&'b [u8]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry<'b>(json: Option<&'b [u8]>) -> EntryRecord<'b> {
        EntryRecord {
            op: Op::Put,
            type_id: 3,
            key: "o-1",
            previous: 4,
            time: 5,
            origin: u64::MAX,
            transaction: 6,
            total_bytes: 7,
            json,
        }
    }

    #[test]
    fn an_entry_is_read_back_with_and_without_a_value() {
        for json in [None, Some(&b"{}"[..])] {
            let bytes = minicbor::to_vec(entry(json)).expect("writing into a Vec does not fail");
            assert_eq!(minicbor::decode::<EntryRecord<'_>>(&bytes).ok(), Some(entry(json)));
        }
    }

    #[test]
    fn an_entry_of_a_later_build_with_more_fields_is_read() {
        let mut bytes = minicbor::to_vec(entry(Some(b"1"))).expect("writing does not fail");
        assert_eq!(bytes[0], 0x89, "an array of nine");
        bytes[0] = 0x8a;
        bytes.push(0x01);
        assert_eq!(minicbor::decode::<EntryRecord<'_>>(&bytes).ok(), Some(entry(Some(b"1"))));
    }
}
