"""What a model may ask of the recall tools."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

_LONGEST_QUERY = 2_000


def _untitled(schema: dict[str, JsonValue]) -> None:
    """Titles only repeat the names."""
    schema.pop("title", None)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for one in properties.values():
            if isinstance(one, dict):
                one.pop("title", None)


class Arguments(BaseModel):
    """Arguments as models give them: a number may come for its digits, and the other way round."""

    model_config = ConfigDict(
        extra="forbid", coerce_numbers_to_str=True, json_schema_extra=_untitled
    )


class SearchArguments(Arguments):
    """What to look for."""

    query: Annotated[str, Field(description="words to look for", max_length=_LONGEST_QUERY)]
    limit: Annotated[int, Field(description="how many matches at most", ge=1, le=20)] = 5


class ReadArguments(Arguments):
    """What to read."""

    at: Annotated[str, Field(description="12, 12-40, or a part such as 12.0", max_length=200)]
    start: Annotated[int, Field(description="the character to go on with", ge=0)] = 0


class ReadInArguments(ReadArguments):
    """What to read, and where."""

    session: Annotated[str, Field(description="the session that recall_everywhere named")]
