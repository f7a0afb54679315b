//! Rows to be written, where they are in Arrow's buffers; nothing of them is kept.

use std::ffi::c_char;
use std::ptr;

/// A column of texts, bytes or lists.
#[repr(C)]
pub struct Column {
    ends: *const i32,
    data: *const u8,
    valid: *const u8,
    first: i64,
}

/// Rows for topics, as Python gives them.
#[repr(C)]
pub struct Rows {
    pub rows: i64,
    pub topics: *const *const c_char,
    /// Which of `topics` a row is for; null: the first.
    topic: *const i32,
    /// Null: the key decides.
    partition: *const i32,
    timestamp: *const i64,
    pub key: Column,
    pub value: Column,
    /// Null: no row has any.
    pub headers: *const Headers,
}

/// Headers of rows.
#[repr(C)]
pub struct Headers {
    pub lists: Column,
    pub key: Column,
    pub value: Column,
}

/// Bytes, or null.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Bytes {
    pub start: *const u8,
    pub size: usize,
}

const UNDECIDED: i32 = -1;

impl Column {
    /// The bounds of a row, unless that is null.
    ///
    /// # Safety
    /// The buffers are those of a column that has the row.
    pub unsafe fn bounds(&self, row: usize) -> Option<(usize, usize)> {
        let at = self.first as usize + row;
        // SAFETY: as above
        unsafe {
            if !self.valid.is_null() && *self.valid.add(at / 8) >> (at % 8) & 1 == 0 {
                return None;
            }
            Some((*self.ends.add(at) as usize, *self.ends.add(at + 1) as usize))
        }
    }

    /// # Safety
    /// As above.
    pub unsafe fn bytes(&self, row: usize) -> Bytes {
        // SAFETY: as above; what has no bytes needs no buffer, but is not null
        unsafe {
            match self.bounds(row) {
                None => Bytes { start: ptr::null(), size: 0 },
                Some((start, end)) if start == end => {
                    Bytes { start: ptr::NonNull::dangling().as_ptr(), size: 0 }
                }
                Some((start, end)) => Bytes { start: self.data.add(start), size: end - start },
            }
        }
    }
}

impl Rows {
    /// # Safety
    /// There is such a row.
    pub unsafe fn topic(&self, row: usize) -> usize {
        // SAFETY: as above
        if self.topic.is_null() { 0 } else { unsafe { *self.topic.add(row) as usize } }
    }

    /// # Safety
    /// As above.
    pub unsafe fn partition(&self, row: usize) -> i32 {
        // SAFETY: as above
        if self.partition.is_null() { UNDECIDED } else { unsafe { *self.partition.add(row) } }
    }

    /// # Safety
    /// As above.
    pub unsafe fn timestamp(&self, row: usize) -> i64 {
        // SAFETY: as above; 0 would be now
        unsafe { (*self.timestamp.add(row)).max(1) }
    }
}
