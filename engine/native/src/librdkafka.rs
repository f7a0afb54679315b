//! The functions of librdkafka that are needed, found in the library that Python's client brings:
//! this crate links to none, so both always are of one version and one build.

use std::ffi::{CStr, c_char, c_int, c_void};

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
                // SAFETY: these are their signatures in rdkafka.h, the same since librdkafka 1.0.
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
    rd_kafka_topic_name: unsafe extern "C" fn(*const c_void) -> *const c_char;
}
