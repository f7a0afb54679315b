"""A receiver of OpenTelemetry's protocol, over HTTP or gRPC, that keeps what it gets."""
# pyright: basic

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Semaphore, Thread

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_rpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as traces_rpc


class Received:
    """Spans and metrics, and the headers that came with them; answers when it may."""

    def __init__(self):
        self.asked = Semaphore(0)
        self.may_answer = Event()
        self.may_answer.set()
        self.requests = []
        self.headers = []

    def take(self, request, headers):
        self.asked.release()
        self.may_answer.wait()
        self.requests.append(request)
        self.headers.append({name.lower(): value for name, value in headers})

    @property
    def spans(self):
        return [
            span
            for request in self.requests
            for resource in getattr(request, "resource_spans", ())
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def all_metrics(self):
        """Each metric as often as it was sent."""
        return [
            metric
            for request in self.requests
            for resource in getattr(request, "resource_metrics", ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]

    @property
    def metrics(self):
        return {metric.name: metric for metric in self.all_metrics}


@contextmanager
def receive_http():
    """Yield the address, and what is received there."""
    received = Received()
    kinds = {
        "/v1/traces": traces.ExportTraceServiceRequest,
        "/v1/metrics": metrics.ExportMetricsServiceRequest,
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.take(kinds[self.path].FromString(body), self.headers.items())
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def receive_grpc():
    """Yield the address, and what is received there."""
    received = Received()

    class Traces(traces_rpc.TraceServiceServicer):
        def Export(self, request, context):
            received.take(request, context.invocation_metadata())
            return traces.ExportTraceServiceResponse()

    class Metrics(metrics_rpc.MetricsServiceServicer):
        def Export(self, request, context):
            received.take(request, context.invocation_metadata())
            return metrics.ExportMetricsServiceResponse()

    with ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads)
        traces_rpc.add_TraceServiceServicer_to_server(Traces(), server)
        metrics_rpc.add_MetricsServiceServicer_to_server(Metrics(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"http://127.0.0.1:{port}", received
        finally:
            server.stop(None).wait()
