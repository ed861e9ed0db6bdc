# What holds for every protobuf message that was decoded: it has no fields that its definition does not know.

from google.protobuf import unknown_fields


def check(message):
    unknown = unknown_fields.UnknownFieldSet(message)
    assert len(unknown) == 0, f"{message.DESCRIPTOR.full_name}: unknown field {unknown[0].field_number}"
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if field.is_repeated else [value]:
                check(part)
