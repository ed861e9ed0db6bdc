# A receiver of OTLP profiles: gRPC's own server for Python, with OpenTelemetry's service and messages.
#
# In: answers as JSON, of which the last is given again, and for TLS a key and a certificate. Out: a line with its port, and one for
# each request with what it holds. It ends with its input.

import json
import sys
import time
from concurrent import futures

import grpc
from google.protobuf import any_pb2, duration_pb2
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as messages
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2_grpc as service

answers = json.loads(sys.argv[1])
received = []


def stacks(request):
    tables = request.dictionary
    counts = {}
    for resource in request.resource_profiles:
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                for sample in profile.samples:
                    locations = tables.stack_table[sample.stack_index].location_indices
                    # A location's lines begin with the innermost function.
                    places = [tables.location_table[location].lines for location in reversed(locations)]
                    lines = [line for lines in places for line in reversed(lines)]
                    functions = [tables.function_table[line.function_index] for line in lines]
                    name = ";".join(tables.string_table[function.name_strindex] for function in functions)
                    value = sum(sample.values) if sample.values else len(sample.timestamps_unix_nano)
                    counts[name] = counts.get(name, 0) + value
    return counts


def retry_info(code, seconds):
    # google.rpc.Status with a google.rpc.RetryInfo, whose only field is a duration.
    delay = duration_pb2.Duration(seconds=seconds).SerializeToString()
    info = bytes([0x0A, len(delay)]) + delay
    detail = any_pb2.Any(type_url="type.googleapis.com/google.rpc.RetryInfo", value=info).SerializeToString()
    return bytes([0x08, code.value[0], 0x1A, len(detail)]) + detail


class Service(service.ProfilesServiceServicer):
    def Export(self, request, context):
        answer = answers[min(len(received), len(answers) - 1)]
        told = {"headers": dict(context.invocation_metadata()), "bytes": request.ByteSize(), "stacks": stacks(request)}
        told["at"] = time.monotonic()
        received.append(told)
        print(json.dumps(told), flush=True)
        if "wait" in answer:
            time.sleep(answer["wait"])
        if "code" in answer:
            code = grpc.StatusCode[answer["code"]]
            if "retry" in answer:
                details = retry_info(code, answer["retry"])
                context.set_trailing_metadata((("grpc-status-details-bin", details),))
            context.abort(code, answer.get("message", ""))
        response = messages.ExportProfilesServiceResponse()
        if "rejected" in answer:
            response.partial_success.rejected_profiles = answer["rejected"]
            response.partial_success.error_message = answer["message"]
        return response


server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
service.add_ProfilesServiceServicer_to_server(Service(), server)
if len(sys.argv) > 2:
    key, certificate = (open(path, "rb").read() for path in sys.argv[2:4])
    port = server.add_secure_port("localhost:0", grpc.ssl_server_credentials([(key, certificate)]))
else:
    port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
sys.stdin.read()
server.stop(0)
