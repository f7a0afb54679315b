# DuckDB names the classes of pyarrow by the module that they are built in.
from pyarrow import RecordBatchReader as RecordBatchReader
from pyarrow import Table as Table
