//! Records as buffers in Arrow's layout, of which whoever takes them becomes the owner.

use std::ffi::CStr;
use std::ptr;

use crate::librdkafka::{Functions, Message};

/// Where the buffers of a column of texts or bytes are.
#[repr(C)]
pub struct BinaryView {
    ends: *const i32,
    data: *const u8,
    size: i64,
    valid: *const u8,
    nulls: i64,
}

/// Where the buffers of all columns are, as Python reads them.
#[repr(C)]
pub struct View {
    rows: i64,
    offset: *const i64,
    timestamp: *const i64,
    key: BinaryView,
    value: BinaryView,
    header_ends: *const i32,
    headers: i64,
    header_key: BinaryView,
    header_value: BinaryView,
}

/// Records that were given away.
#[repr(C)]
pub struct Chunk {
    view: View,
    columns: Columns,
}

impl Chunk {
    pub fn of(columns: Columns) -> Box<Chunk> {
        // moving the columns moves none of their buffers
        Box::new(Chunk { view: columns.view(), columns })
    }

    pub fn rows(&self) -> usize {
        self.columns.rows()
    }
}

struct Binary {
    ends: Vec<i32>,
    data: Vec<u8>,
    valid: Vec<u8>,
    nulls: i64,
}

impl Binary {
    fn new() -> Binary {
        Binary { ends: vec![0], data: Vec::new(), valid: Vec::new(), nulls: 0 }
    }

    /// # Safety
    /// `size` bytes can be read at `start`, unless that is null.
    unsafe fn push(&mut self, start: *const u8, size: usize) {
        let row = self.ends.len() - 1;
        if row % 8 == 0 {
            self.valid.push(0);
        }
        if start.is_null() {
            self.nulls += 1;
        } else {
            self.valid[row / 8] |= 1 << (row % 8);
            // SAFETY: as above
            self.data.extend_from_slice(unsafe { std::slice::from_raw_parts(start, size) });
        }
        self.ends.push(self.data.len() as i32);
    }

    fn view(&self) -> BinaryView {
        BinaryView {
            ends: self.ends.as_ptr(),
            data: self.data.as_ptr(),
            size: self.data.len() as i64,
            valid: self.valid.as_ptr(),
            nulls: self.nulls,
        }
    }
}

/// Records of one partition, in their order.
pub struct Columns {
    offset: Vec<i64>,
    timestamp: Vec<i64>,
    key: Binary,
    value: Binary,
    header_ends: Vec<i32>,
    header_key: Binary,
    header_value: Binary,
}

impl Columns {
    pub fn new() -> Columns {
        Columns {
            offset: Vec::new(),
            timestamp: Vec::new(),
            key: Binary::new(),
            value: Binary::new(),
            header_ends: vec![0],
            header_key: Binary::new(),
            header_value: Binary::new(),
        }
    }

    pub fn rows(&self) -> usize {
        self.offset.len()
    }

    /// Bytes of the largest column, which must stay below 2^31.
    pub fn size(&self) -> usize {
        let headers = self.header_key.data.len().max(self.header_value.data.len());
        self.key.data.len().max(self.value.data.len()).max(headers)
    }

    /// # Safety
    /// The message is one of librdkafka that was not destroyed yet, and no event.
    pub unsafe fn push(&mut self, api: &Functions, message: *const Message) {
        // SAFETY: the message is whole
        let record = unsafe { &*message };
        self.offset.push(record.offset);
        // SAFETY: it may be asked for no type
        self.timestamp.push(unsafe { (api.rd_kafka_message_timestamp)(message, ptr::null_mut()) });
        // SAFETY: librdkafka says where they are and how long
        unsafe {
            self.key.push(record.key, record.key_size);
            self.value.push(record.value, record.value_size);
            self.push_headers(api, message);
        }
    }

    unsafe fn push_headers(&mut self, api: &Functions, message: *const Message) {
        let mut headers = ptr::null_mut();
        // SAFETY: the headers belong to the message, which stays
        if unsafe { (api.rd_kafka_message_headers)(message, &mut headers) } == 0 {
            let (mut name, mut value, mut size) = (ptr::null(), ptr::null(), 0);
            let mut at = 0;
            // SAFETY: names end with NUL; a value has as many bytes as are said, or is null
            unsafe {
                while (api.rd_kafka_header_get_all)(headers, at, &mut name, &mut value, &mut size) == 0 {
                    let text = CStr::from_ptr(name).to_string_lossy();
                    self.header_key.push(text.as_ptr(), text.len());
                    self.header_value.push(value.cast(), size);
                    at += 1;
                }
            }
        }
        self.header_ends.push(self.header_key.ends.len() as i32 - 1);
    }

    fn view(&self) -> View {
        View {
            rows: self.rows() as i64,
            offset: self.offset.as_ptr(),
            timestamp: self.timestamp.as_ptr(),
            key: self.key.view(),
            value: self.value.view(),
            header_ends: self.header_ends.as_ptr(),
            headers: self.header_key.ends.len() as i64 - 1,
            header_key: self.header_key.view(),
            header_value: self.header_value.view(),
        }
    }
}
