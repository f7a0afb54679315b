//! A consumer that reads exact ranges: committed records alone, and no group.

use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use crate::client::{self, Report, Reports};
use crate::columns::{Chunk, Columns};
use crate::librdkafka::{Functions, Message};

const CONSUMER: c_int = 1;
const PARTITION_END: c_int = -191;
const WITHOUT_CLOSE: c_int = 8;
const AT_ONCE: usize = 1_000;

/// What a call of `fill` came to.
#[repr(i32)]
pub enum Filled {
    /// All ranges were read.
    All = 0,
    /// So many rows or bytes as were wanted.
    Enough = 1,
    /// Nothing more came in time.
    Waiting = 2,
    /// librdkafka said why not.
    Failed = 3,
}

/// A range of a partition, as far as it was read.
struct Range {
    topic: CString,
    partition: i32,
    end: i64,
    next: i64,
    done: bool,
    columns: Columns,
}

pub struct Reader {
    api: Functions,
    client: *mut c_void,
    queue: *mut c_void,
    reports: Box<Reports>,
    ranges: Vec<Range>,
    held: VecDeque<*mut Message>,
    found: Vec<*mut Message>,
    last: usize,
}

unsafe extern "C" fn on_error(client: *mut c_void, code: c_int, text: *const c_char, reports: *mut c_void) {
    // SAFETY: these are the `reports` of the reader, which outlive its client
    unsafe { client::note(&*reports.cast::<Reports>(), client, code, text) };
}

impl Reader {
    /// Opens a client; the error is that of the settings.
    pub fn open(api: Functions, settings: &[(&CStr, &CStr)]) -> Result<Box<Reader>, String> {
        let reports = Box::new(Reports::new(api));
        let opaque: *const Reports = &*reports;
        // SAFETY: the reports live in the reader, which destroys its client first
        unsafe {
            let client = client::open(&api, CONSUMER, settings, |configuration| {
                (api.rd_kafka_conf_set_opaque)(configuration, opaque.cast_mut().cast());
                (api.rd_kafka_conf_set_error_cb)(configuration, on_error);
            })?;
            (api.rd_kafka_poll_set_consumer)(client);
            let queue = (api.rd_kafka_queue_get_consumer)(client);
            let found = vec![ptr::null_mut(); AT_ONCE];
            let (ranges, held) = (Vec::new(), VecDeque::new());
            Ok(Box::new(Reader { api, client, queue, reports, ranges, held, found, last: 0 }))
        }
    }

    /// Begins to read ranges in place of those before; the code is that of librdkafka.
    pub fn begin(&mut self, ranges: &[(&CStr, i32, i64, i64)]) -> c_int {
        self.let_go();
        self.last = 0;
        self.ranges = ranges
            .iter()
            .map(|&(topic, partition, start, end)| Range {
                topic: topic.to_owned(),
                partition,
                end,
                next: start,
                done: start >= end,
                columns: Columns::new(),
            })
            .collect();
        // SAFETY: the list is ours, and is not used behind its end
        unsafe {
            let list = (self.api.rd_kafka_topic_partition_list_new)(self.ranges.len() as c_int);
            for range in self.ranges.iter().filter(|range| !range.done) {
                let (topic, partition) = (range.topic.as_ptr(), range.partition);
                (self.api.rd_kafka_topic_partition_list_add)(list, topic, partition);
                (self.api.rd_kafka_topic_partition_list_set_offset)(list, topic, partition, range.next);
            }
            let code = (self.api.rd_kafka_assign)(self.client, list);
            (self.api.rd_kafka_topic_partition_list_destroy)(list);
            code
        }
    }

    /// Reads until all ranges are read, there are so many rows or bytes, or nothing more comes.
    pub fn fill(&mut self, rows: usize, bytes: usize, timeout: c_int) -> Filled {
        let (mut count, mut size) = (0, 0);
        while self.ranges.iter().any(|range| !range.done) {
            let Some(message) = self.next_message(timeout) else {
                return Filled::Waiting;
            };
            // SAFETY: it was handed out once, and is destroyed here, where it is not put back
            unsafe {
                let record = &*message;
                if size > 0 && size + record.value_size + record.key_size > bytes {
                    self.held.push_front(message);
                    return Filled::Enough;
                }
                let code = record.code;
                let taken = if code == 0 { self.take(message) } else { self.note(message) };
                (self.api.rd_kafka_message_destroy)(message);
                if !taken {
                    return Filled::Failed;
                }
            }
            if let Some(range) = self.ranges.get(self.last) {
                size = size.max(range.columns.size());
            }
            count += 1;
            if count >= rows {
                return Filled::Enough;
            }
        }
        Filled::All
    }

    /// Gives away what was read of a range since.
    pub fn chunk(&mut self, range: usize) -> Option<Box<Chunk>> {
        let range = self.ranges.get_mut(range)?;
        let chunk = Chunk::of(std::mem::replace(&mut range.columns, Columns::new()));
        (chunk.rows() > 0).then_some(chunk)
    }

    /// Stops fetching.
    pub fn end(&mut self) {
        self.let_go();
        self.ranges.clear();
        // SAFETY: no list means no partitions
        unsafe { (self.api.rd_kafka_assign)(self.client, ptr::null()) };
    }

    /// Takes the oldest report.
    pub fn report(&self) -> Option<Report> {
        self.reports.take()
    }

    fn next_message(&mut self, timeout: c_int) -> Option<*mut Message> {
        if self.held.is_empty() && self.fetch(0, AT_ONCE) == 0 {
            // it would wait for all that it may bring
            self.fetch(timeout, 1);
        }
        self.held.pop_front()
    }

    fn fetch(&mut self, timeout: c_int, most: usize) -> usize {
        // SAFETY: there is room for `most` messages
        let count = unsafe {
            (self.api.rd_kafka_consume_batch_queue)(self.queue, timeout, self.found.as_mut_ptr(), most)
        };
        let count = count.max(0) as usize;
        self.held.extend(&self.found[..count]);
        count
    }

    /// # Safety
    /// The message is a record that was not destroyed yet.
    unsafe fn take(&mut self, message: *mut Message) -> bool {
        // SAFETY: as above
        let record = unsafe { &*message };
        // SAFETY: as above
        let Some(at) = (unsafe { self.range_of(record) }) else { return true };
        let range = &mut self.ranges[at];
        self.last = at;
        if range.done || record.offset < range.next {
            return true;
        }
        if record.offset < range.end {
            // SAFETY: as above
            unsafe { range.columns.push(&self.api, message) };
            range.next = record.offset + 1;
        }
        range.done = record.offset >= range.end - 1;
        true
    }

    /// Takes an event: the end of a partition, or an error.
    ///
    /// # Safety
    /// The message was not destroyed yet.
    unsafe fn note(&mut self, message: *mut Message) -> bool {
        // SAFETY: as above
        let event = unsafe { &*message };
        if event.code != PARTITION_END {
            let text = if event.value.is_null() {
                String::new()
            } else {
                // SAFETY: the value of an error is its text
                let bytes = unsafe { std::slice::from_raw_parts(event.value, event.value_size) };
                String::from_utf8_lossy(bytes).into_owned()
            };
            self.reports.add(Report { code: event.code, text, fatal: false });
            return false;
        }
        // SAFETY: as above
        if let Some(at) = unsafe { self.range_of(event) } {
            let range = &mut self.ranges[at];
            // before that, a transaction is open: its records come when it has ended
            range.done |= event.offset >= range.end;
        }
        true
    }

    /// # Safety
    /// The message was not destroyed yet.
    unsafe fn range_of(&self, message: &Message) -> Option<usize> {
        if message.topic.is_null() {
            return None;
        }
        // SAFETY: names of topics end with NUL, and live as long as the topic
        let topic = unsafe { CStr::from_ptr((self.api.rd_kafka_topic_name)(message.topic)) };
        let is_of = |range: &Range| range.partition == message.partition && *range.topic == *topic;
        match self.ranges.get(self.last) {
            Some(range) if is_of(range) => Some(self.last),
            _ => self.ranges.iter().position(is_of),
        }
    }

    fn let_go(&mut self) {
        for message in self.held.drain(..) {
            // SAFETY: what is held was not destroyed yet
            unsafe { (self.api.rd_kafka_message_destroy)(message) };
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.let_go();
        // SAFETY: nothing of the client is used behind this
        unsafe {
            (self.api.rd_kafka_queue_destroy)(self.queue);
            (self.api.rd_kafka_destroy_flags)(self.client, WITHOUT_CLOSE);
        }
    }
}
