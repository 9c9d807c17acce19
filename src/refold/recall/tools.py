"""Recall as tools for a model: to find what was said, and to read it again.

Each returns a text of at most so many characters, marked line by line as quoted, so that nothing in
it can pass for an instruction or for the tool's own words. What was cut is said, and how to get the
rest. Wrong arguments come back as a sentence. No framework is needed to offer them.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache

from pydantic import BaseModel, JsonValue, ValidationError

from refold.errors import InvalidInput, LogError
from refold.log import MAIN_SCOPE, Log
from refold.recall.answers import Answers
from refold.recall.arguments import ReadArguments, ReadInArguments, SearchArguments
from refold.recall.reader import Reader

CHARS = 8_000
"""The most characters that a tool returns, unless told otherwise."""
FEWEST_CHARS = 2_000
LONGEST_COMPLAINT = 500


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as any framework can register it."""

    name: str
    description: str
    arguments: type[BaseModel]
    call: Callable[..., Awaitable[str]]
    """An async function that takes the arguments by name."""

    @property
    def schema(self) -> dict[str, JsonValue]:
        """The JSON schema of the arguments."""
        return _schema(self.arguments)

    async def run(self, arguments: Mapping[str, JsonValue] | str) -> str:
        """Call it with what a model gave, as JSON or read from it; it may be anything."""
        try:
            if isinstance(arguments, str):
                given = self.arguments.model_validate_json(arguments)
            else:
                given = self.arguments.model_validate(arguments)
        except ValidationError as error:
            return _complaint(error)
        return await self.call(**given.model_dump())


@cache
def _schema(arguments: type[BaseModel]) -> dict[str, JsonValue]:
    return arguments.model_json_schema()


def recall_tools(
    log: Log,
    session: str,
    *,
    scope: str = MAIN_SCOPE,
    chars: int = CHARS,
    everywhere: bool = False,
) -> tuple[Tool, ...]:
    """The tools of one model in one session: what its scope may see, in so many characters.

    With `everywhere` it may also look into the tenant's other sessions.
    """
    if chars < FEWEST_CHARS:
        raise InvalidInput(f"{chars} characters are too few.", f"Allow {FEWEST_CHARS:,} or more.")
    answers = Answers(log, session, Reader.model(scope), chars)
    offered = (_searching(answers), _reading(answers))
    return (*offered, _searching_all(answers), _reading_in(answers)) if everywhere else offered


def _searching(answers: Answers) -> Tool:
    async def recall_search(query: str, limit: int = 5) -> str:
        """Find what was said, called or returned earlier in this conversation.

        It finds what is no longer shown or only summarised, too. Give the words that would be in
        it: names, paths, error texts. The best matches come first, each with its number in
        brackets; read one in full with recall_read.
        """
        return await _told(answers.found(query, limit))

    return _tool(SearchArguments, recall_search)


def _reading(answers: Answers) -> Tool:
    async def recall_read(at: str, start: int = 0) -> str:
        """Read messages from earlier in this conversation in full, also folded ones.

        `at` is a number that recall_search or a summary gave (12), a run of them (12-40), or the
        part that a reference such as […archived: 9000 chars, part 12.0] names (12.0). Where a text
        was cut, `start` is the character to go on with.
        """
        return await _told(answers.read(at, start))

    return _tool(ReadArguments, recall_read)


def _searching_all(answers: Answers) -> Tool:
    async def recall_everywhere(query: str, limit: int = 5) -> str:
        """Find what was said in all conversations that are kept, this one included.

        Give the words that would be in it. Each match names its session; read it in full with
        recall_read_in.
        """
        return await _told(answers.found_everywhere(query, limit))

    return _tool(SearchArguments, recall_everywhere)


def _reading_in(answers: Answers) -> Tool:
    async def recall_read_in(session: str, at: str, start: int = 0) -> str:
        """Read messages of another conversation in full.

        `session` is one that recall_everywhere named; `at` and `start` are as in recall_read.
        """
        return await _told(answers.read(at, start, session))

    return _tool(ReadInArguments, recall_read_in)


def _tool(arguments: type[BaseModel], call: Callable[..., Awaitable[str]]) -> Tool:
    description = " ".join((call.__doc__ or "").split())
    return Tool(call.__name__, description, arguments, call)


async def _told(answer: Awaitable[str]) -> str:
    """The answer, or why there is none, in words for the model."""
    try:
        return await answer
    except InvalidInput as error:
        return str(error)[:LONGEST_COMPLAINT]
    except LogError as error:  # what to do about it is told to programmers
        return error.what[:LONGEST_COMPLAINT]


def _complaint(error: ValidationError) -> str:
    problems = "; ".join(
        f"{'.'.join(map(str, problem['loc'])) or 'the arguments'}: {problem['msg']}"
        for problem in error.errors(include_input=False, include_url=False, include_context=False)
    )
    return f"Call it again with other arguments: {problems}"[:LONGEST_COMPLAINT]
