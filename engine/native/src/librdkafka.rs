//! The functions of librdkafka that are needed, found in the library that Python's client brings:
//! this crate links to none, so both always are of one version and one build.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::rows::Bytes;

/// A message as librdkafka lays it out (`rd_kafka_message_t`), or an event in its place.
#[repr(C)]
pub struct Message {
    pub code: c_int,
    pub topic: *mut c_void,
    pub partition: i32,
    pub value: *const u8,
    pub value_size: usize,
    pub key: *const u8,
    pub key_size: usize,
    pub offset: i64,
    private: *mut c_void,
}

/// What a row consists of, as `rd_kafka_produceva` takes it (`rd_kafka_vu_t`).
#[repr(C)]
pub struct Tagged {
    tag: c_int,
    pub content: Content,
}

/// The content of a part, as its tag has it; as large as librdkafka keeps room for.
#[repr(C)]
pub union Content {
    pub handle: *mut c_void,
    pub number: i32,
    pub time: i64,
    pub bytes: Bytes,
    room: [u64; 8],
}

impl Tagged {
    pub fn new(tag: c_int, content: Content) -> Tagged {
        Tagged { tag, content }
    }
}

pub type OnDelivery = unsafe extern "C" fn(*mut c_void, *const Message, *mut c_void);
pub type OnError = unsafe extern "C" fn(*mut c_void, c_int, *const c_char, *mut c_void);
pub type OnLog = unsafe extern "C" fn(*const c_void, c_int, *const c_char, *const c_char);

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const NOW: c_int = 2;

macro_rules! functions {
    ($($name:ident: $type:ty;)*) => {
        #[allow(non_snake_case)]
        #[derive(Clone, Copy)]
        pub struct Functions { $(pub $name: $type,)* }

        impl Functions {
            /// Finds them in the library at a path, which stays loaded.
            pub fn of(path: &CStr) -> Result<Functions, String> {
                // SAFETY: the path ends with NUL; a library that is loaded already is that one.
                let library = unsafe { dlopen(path.as_ptr(), NOW) };
                if library.is_null() {
                    return Err(format!("{} cannot be loaded", path.to_string_lossy()));
                }
                $(
                    let name = concat!(stringify!($name), "\0");
                    // SAFETY: the name ends with NUL.
                    let $name = unsafe { dlsym(library, name.as_ptr().cast()) };
                    if $name.is_null() {
                        return Err(format!("{} has no {}", path.to_string_lossy(), stringify!($name)));
                    }
                )*
                // SAFETY: these are their signatures in rdkafka.h, the same since librdkafka 1.6.
                Ok(Functions { $($name: unsafe { std::mem::transmute::<*mut c_void, $type>($name) },)* })
            }
        }
    };
}

functions! {
    rd_kafka_conf_new: unsafe extern "C" fn() -> *mut c_void;
    rd_kafka_conf_destroy: unsafe extern "C" fn(*mut c_void);
    rd_kafka_conf_set: unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char, *mut c_char, usize) -> c_int;
    rd_kafka_conf_set_opaque: unsafe extern "C" fn(*mut c_void, *mut c_void);
    rd_kafka_conf_set_error_cb: unsafe extern "C" fn(*mut c_void, OnError);
    rd_kafka_conf_set_log_cb: unsafe extern "C" fn(*mut c_void, OnLog);
    rd_kafka_new: unsafe extern "C" fn(c_int, *mut c_void, *mut c_char, usize) -> *mut c_void;
    rd_kafka_destroy_flags: unsafe extern "C" fn(*mut c_void, c_int);
    rd_kafka_poll_set_consumer: unsafe extern "C" fn(*mut c_void) -> c_int;
    rd_kafka_queue_get_consumer: unsafe extern "C" fn(*mut c_void) -> *mut c_void;
    rd_kafka_queue_destroy: unsafe extern "C" fn(*mut c_void);
    rd_kafka_topic_partition_list_new: unsafe extern "C" fn(c_int) -> *mut c_void;
    rd_kafka_topic_partition_list_add: unsafe extern "C" fn(*mut c_void, *const c_char, i32) -> *mut c_void;
    rd_kafka_topic_partition_list_set_offset: unsafe extern "C" fn(*mut c_void, *const c_char, i32, i64) -> c_int;
    rd_kafka_topic_partition_list_destroy: unsafe extern "C" fn(*mut c_void);
    rd_kafka_assign: unsafe extern "C" fn(*mut c_void, *const c_void) -> c_int;
    rd_kafka_consume_batch_queue: unsafe extern "C" fn(*mut c_void, c_int, *mut *mut Message, usize) -> isize;
    rd_kafka_last_error: unsafe extern "C" fn() -> c_int;
    rd_kafka_message_destroy: unsafe extern "C" fn(*mut Message);
    rd_kafka_message_timestamp: unsafe extern "C" fn(*const Message, *mut c_int) -> i64;
    rd_kafka_message_headers: unsafe extern "C" fn(*const Message, *mut *mut c_void) -> c_int;
    rd_kafka_header_get_all: unsafe extern "C" fn(*const c_void, usize, *mut *const c_char, *mut *const c_void, *mut usize) -> c_int;
    rd_kafka_conf_set_dr_msg_cb: unsafe extern "C" fn(*mut c_void, OnDelivery);
    rd_kafka_fatal_error: unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> c_int;
    rd_kafka_topic_new: unsafe extern "C" fn(*mut c_void, *const c_char, *mut c_void) -> *mut c_void;
    rd_kafka_topic_destroy: unsafe extern "C" fn(*mut c_void);
    rd_kafka_produceva: unsafe extern "C" fn(*mut c_void, *const Tagged, usize) -> *mut c_void;
    rd_kafka_headers_new: unsafe extern "C" fn(usize) -> *mut c_void;
    rd_kafka_headers_destroy: unsafe extern "C" fn(*mut c_void);
    rd_kafka_header_add: unsafe extern "C" fn(*mut c_void, *const c_char, isize, *const c_void, isize) -> c_int;
    rd_kafka_metadata: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, *mut *const c_void, c_int) -> c_int;
    rd_kafka_metadata_destroy: unsafe extern "C" fn(*const c_void);
    rd_kafka_init_transactions: unsafe extern "C" fn(*mut c_void, c_int) -> *mut c_void;
    rd_kafka_begin_transaction: unsafe extern "C" fn(*mut c_void) -> *mut c_void;
    rd_kafka_commit_transaction: unsafe extern "C" fn(*mut c_void, c_int) -> *mut c_void;
    rd_kafka_abort_transaction: unsafe extern "C" fn(*mut c_void, c_int) -> *mut c_void;
    rd_kafka_error_code: unsafe extern "C" fn(*const c_void) -> c_int;
    rd_kafka_error_string: unsafe extern "C" fn(*const c_void) -> *const c_char;
    rd_kafka_error_is_fatal: unsafe extern "C" fn(*const c_void) -> c_int;
    rd_kafka_error_is_retriable: unsafe extern "C" fn(*const c_void) -> c_int;
    rd_kafka_error_txn_requires_abort: unsafe extern "C" fn(*const c_void) -> c_int;
    rd_kafka_error_destroy: unsafe extern "C" fn(*mut c_void);
    rd_kafka_flush: unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
    rd_kafka_poll: unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
    rd_kafka_outq_len: unsafe extern "C" fn(*mut c_void) -> c_int;
    rd_kafka_purge: unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
    rd_kafka_topic_name: unsafe extern "C" fn(*const c_void) -> *const c_char;
}
